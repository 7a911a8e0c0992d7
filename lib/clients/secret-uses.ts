import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import type { ClientRecord } from '../records/client.ts'
import { type Document, DuplicateKeyError } from '../store/port.ts'
import { TIMERS, type Timers } from '../timers.ts'

/** When a client's secrets were last used: a field for each, with the id of the secret. */
type UsesRecord = Document & { [use: `use:${string}`]: string }

/** Milliseconds between two writes. A crash loses what was noted since the last one. */
const INTERVAL = 60_000

/** Concurrent writes. */
const AT_ONCE = 16

const toField = (secretId: string): `use:${string}` => `use:${secretId}`

/** Last uses, by the id of the secret. */
export type Uses = Readonly<Record<string, string>>

/**
 * The last uses of clients' secrets and keys. They are stored apart from the clients, and written at most once a minute: an authentication
 * causes no write, and changes no client, so that cached callers stay valid.
 */
export function createSecretUses ({ store, now, report, timers = TIMERS }: Pick<Base, 'store' | 'now' | 'report'> & { timers?: Timers }) {
  const records = store.collection<UsesRecord>('client_uses')
  let noted = new Map<string, Map<string, string>>()
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()

  async function writeOne (id: string, uses: Map<string, string>): Promise<void> {
    const set = Object.fromEntries([...uses].map(([secretId, time]) => [toField(secretId), time]))
    if (await records.update(id, { set }) !== null) return
    // Not for a client that was deleted meanwhile.
    if (await store.collection<ClientRecord>('clients').get(id) === null) return
    try {
      await records.insert({ id, ...set })
    } catch (error) {
      if (!(error instanceof DuplicateKeyError)) throw error
      await records.update(id, { set })
    }
  }

  async function write (): Promise<void> {
    const batch = [...noted]
    noted = new Map()
    for (let start = 0; start < batch.length; start += AT_ONCE) {
      await Promise.all(batch.slice(start, start + AT_ONCE).map(([id, uses]) => writeOne(id, uses)))
    }
  }

  /** Writes what was noted, after an earlier write has ended. */
  function flush (): Promise<void> {
    timers.clear(timer)
    timer = undefined
    writing = writing.then(write).catch(report('store'))
    return writing
  }

  return {
    /** Notes that a secret has authenticated a request now. */
    note (client_id: string, secretId: string): void {
      const uses = noted.get(client_id) ?? new Map<string, string>()
      noted.set(client_id, uses.set(secretId, toTimestamp(now())))
      if (timer !== undefined) return
      timer = timers.set(() => { void flush() }, INTERVAL)
      timer.unref?.()
    },

    /** The last uses of a client's secrets, those of other processes up to a minute late. */
    async read (client_id: string): Promise<Uses> {
      const { id: _, ...stored } = await records.get(client_id) ?? { id: '' }
      const uses = Object.entries(stored).map(([field, time]) => [field.slice(toField('').length), time])
      return Object.fromEntries([...uses, ...noted.get(client_id) ?? []]) as Uses
    },

    /** Forgets a deleted client, or one secret of a client. */
    async forget (client_id: string, secretId?: string): Promise<void> {
      if (secretId === undefined) {
        noted.delete(client_id)
        await records.delete(client_id)
      } else {
        noted.get(client_id)?.delete(secretId)
        await records.update(client_id, { unset: [toField(secretId)] })
      }
    },

    flush,
    close: flush
  }
}

export type SecretUses = ReturnType<typeof createSecretUses>
