import { PREFIXES } from '../crypto/prefixed-secret.ts'
import { hashToken } from '../crypto/random-token.ts'
import { defined } from '../defined.ts'
import type { ClientRecord } from '../records/client.ts'
import type { TokenRecord } from '../records/token.ts'
import type { Actor } from '../roles.ts'
import type { Store } from '../store/port.ts'
import { scan } from '../store/scan.ts'
import type { Tokens } from '../tokens/tokens.ts'
import type { Clients } from './clients.ts'

/** What was ended, without its text. */
interface Leaked {
  id: string
  client_id: string
  /** Absent on a named secret. */
  user_id?: string
  /** Of a named secret or a service token. */
  name?: string
}

/** Ends what somebody has found in the wrong place. */
export function createLeaks ({ store, tokens, clients }: { store: Store, tokens: Pick<Tokens, 'revoke'>, clients: Pick<Clients, 'removeSecret'> }) {
  async function endToken (token: string): Promise<Leaked | null> {
    const id = hashToken(token)
    const found = await Promise.all(['access_tokens', 'refresh_tokens'].map(async (name) => await store.collection<TokenRecord>(name).get(id)))
    const record = found.find((one) => one !== null)
    if (record === undefined || record === null) return null
    await tokens.revoke(record)
    return defined({ id, client_id: record.client_id, user_id: record.user_id, name: record.name })
  }

  async function removeSecret (secret: string, actor: Actor): Promise<Leaked | null> {
    const hash = hashToken(secret)
    for await (const batch of scan(store.collection<ClientRecord>('clients'), {})) {
      for (const { id: client_id, secrets = [] } of batch) {
        const found = secrets.find((one) => one.hash === hash)
        if (found === undefined) continue
        await clients.removeSecret(client_id, found.id, actor)
        return { id: found.id, client_id, name: found.name }
      }
    }
    return null
  }

  return {
    /**
     * Ends an access or refresh token with its session, a service token, or a named secret, which is looked for among all clients.
     * @returns null when there is no such token or secret, or it has ended
     */
    end: async (text: string, actor: Actor): Promise<Leaked | null> => text.startsWith(PREFIXES.secret) ? await removeSecret(text, actor) : await endToken(text)
  }
}

export type Leaks = ReturnType<typeof createLeaks>
