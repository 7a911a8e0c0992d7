import { findUsable } from '../../lib/clients/usable.ts'
import { createClients } from '../../lib/clients/clients.ts'
import { createToken } from '../../lib/crypto/random-token.ts'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import { createClientAuthentication } from '../../lib/oidc/client-authentication.ts'
import { createTimes } from '../../lib/oidc/model-adapter.ts'
import { createUserRecord } from '../../lib/records.ts'
import { DEFAULT_ROLE_NAMES } from '../../lib/roles.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createTokens } from '../../lib/tokens/tokens.ts'
import { createSilentRecorder } from './events.ts'
import { type Choose, Scheduler } from './scheduler.ts'
import { wrapStore } from './wrap-store.ts'

const NOW = Date.UTC(2026, 10, 23)
const TIME = new Date(NOW).toISOString()
const ADMIN = { user_id: 'u1', isAdmin: true }

/** What somebody does with the client while its secret is removed. */
type Other = 'adds another' | 'renames the client' | 'removes it too'

export interface RaceOutcome { survivors: number, got: number, order: string }

/** Races requests that a secret authenticates with the removal of that secret, one store call at a time. */
export async function openSecretRaces () {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: () => NOW })
  const scheduler = new Scheduler()
  const store = wrapStore(inner, scheduler.around)
  const recorder = createSilentRecorder(store)
  const box = createSecretBox(generateSecretKey())
  const now = () => NOW
  const tokens = createTokens({ store, now, roles: DEFAULT_ROLE_NAMES, recorder, onError: () => {} })
  const uses = { read: async () => ({}), forget: async () => {}, note: () => {} }
  const clients = createClients({ store, now, box, tokens, recorder, checkQuota: async () => {}, uses, ends: { add: async () => {}, forget: async () => {} }, checkUrl: (url) => url })
  const authentication = createClientAuthentication({ store, box, now, times: createTimes(now), uses })
  await inner.collection('users').insert(createUserRecord(NOW, { id: 'u1', account: 'ann', roles: {}, name: '', info: {} }))

  /** As the token endpoint: reads the client, authenticates it, and issues a token. */
  async function getToken (client_id: string, secret: string, told: string[]): Promise<void> {
    const record = await findUsable(store, client_id, TIME)
    const verdict = record === null ? null : await authentication.verify(record, { method: 'secret', secret }, 'https://id.example')
    if (verdict === null) return
    const token = createToken()
    await tokens.issue({ token, ttl: 3600, fields: { scopes: [], ...verdict } }, { user_id: 'u1', client_id, user_epoch: 0, client_epoch: record!.epoch })
    told.push(token)
    await tokens.authenticate(token)
  }

  async function isAlive (token: string): Promise<boolean> {
    try {
      await tokens.authenticate(token)
      return true
    } catch {
      return false
    }
  }

  async function play (which: 'first' | 'named', racers: number, other: Other | undefined, choose: Choose): Promise<RaceOutcome> {
    const { clientId } = await clients.create({ data: { redirectUris: [], scopes: [], name: 'n' }, credentials: true }, ADMIN)
    const kept = await clients.addSecret(clientId, { data: { name: 'kept' } }, ADMIN)
    const added = await clients.addSecret(clientId, { data: { name: 'removed' } }, ADMIN)
    const removed = which === 'named' ? added : { id: 'first', secret: (await clients.require(clientId, ADMIN)).clientSecret! }
    const [told, others]: [string[], string[]] = [[], []]
    const acts: Record<Other, () => Promise<unknown>> = {
      'adds another': async () => await clients.addSecret(clientId, { data: { name: 'x' } }, ADMIN),
      'renames the client': async () => await clients.patch(clientId, { data: { name: 'm' } }, ADMIN),
      'removes it too': async () => await clients.removeSecret(clientId, removed.id, ADMIN)
    }
    await scheduler.run({
      remover: async () => await clients.removeSecret(clientId, removed.id, ADMIN),
      keeper: async () => await getToken(clientId, kept.secret, others),
      ...(other !== undefined && { other: acts[other] }),
      ...Object.fromEntries(Array.from({ length: racers }, (_, index) => [`racer ${index}`, async () => await getToken(clientId, removed.secret, told)]))
    }, choose)
    const order = scheduler.log.map(({ actor, collection, method }) => `${actor}: ${collection}.${method}`).join('\n')
    let survivors = 0
    for (const token of told) if (await isAlive(token)) survivors++
    await getToken(clientId, removed.secret, told).then(() => {}, () => {})
    for (const token of told) if (await isAlive(token)) survivors++
    // The requests of the other secret never fail.
    if (others.length !== 1 || !await isAlive(others[0]!)) throw new Error('a request of the other secret failed')
    return { survivors, got: told.length, order }
  }

  return { scheduler, play, close: async () => await inner.close() }
}
