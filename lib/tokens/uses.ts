import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import { type AddressMode, keepAddress } from '../events/address.ts'
import type { ClientRecord } from '../records/client.ts'
import { type Document, DuplicateKeyError } from '../store/port.ts'
import { TIMERS, type Timers } from '../timers.ts'

/** The last uses of what a client authenticates with: a field for each, with its id. The time, and after a space the address. */
type UsesRecord = Document & { [use: `use:${string}`]: string }

/** The last use of a secret, a key or a service token. */
export interface Use {
  time: string
  /** The address of a request with a service token, as events keep addresses. Absent: not kept, or an API has asked about the token. */
  from?: string | undefined
}

/** A use that is not written yet. Its time and address are made into texts when it is written, since most uses are followed by another. */
interface Noted { time: number, address: string | undefined }

/** Milliseconds between two writes. A crash loses what was noted since the last one. */
const INTERVAL = 60_000

/** Concurrent writes. */
const AT_ONCE = 16

/** Last uses, by the id of the secret, key or token. */
export type Uses = Readonly<Record<string, Use>>

const toField = (id: string): `use:${string}` => `use:${id}`

const toText = ({ time, from }: Use): string => from === undefined ? time : `${time} ${from}`

function readUse (text: string): Use {
  const [time = '', from] = text.split(' ')
  return { time, from }
}

interface UsesParts extends Pick<Base, 'store' | 'now' | 'report'> {
  /** How much of an address is kept. Absent: nothing. */
  addresses?: AddressMode | undefined
  timers?: Timers
}

/**
 * The last uses of clients' secrets, keys and service tokens. They are stored apart from the clients, and written at most once a minute: an authentication
 * causes no write, and changes no client, so that cached callers stay valid.
 */
export function createUses ({ store, now, report, addresses = 'off', timers = TIMERS }: UsesParts) {
  const records = store.collection<UsesRecord>('client_uses')
  let noted = new Map<string, Map<string, Noted>>()
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()

  const toUse = ({ time, address }: Noted): Use => ({ time: toTimestamp(time), from: keepAddress(address, addresses) })

  async function writeOne (id: string, uses: Map<string, Noted>): Promise<void> {
    const set = Object.fromEntries([...uses].map(([one, use]) => [toField(one), toText(toUse(use))]))
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
    /** Notes that a secret, key or token was used now. @param address of its request */
    note (client_id: string, id: string, address?: string): void {
      const uses = noted.get(client_id) ?? new Map<string, Noted>()
      const known = uses.get(id)
      if (known === undefined) noted.set(client_id, uses.set(id, { time: now(), address }))
      else [known.time, known.address] = [now(), address]
      if (timer !== undefined) return
      timer = timers.set(() => { void flush() }, INTERVAL)
      timer.unref?.()
    },

    /** The last uses of what a client authenticates with, those of other processes up to a minute late. */
    async read (client_id: string): Promise<Uses> {
      const { id: _, ...stored } = await records.get(client_id) ?? { id: '' }
      const uses = Object.entries(stored).map(([field, text]) => [field.slice(toField('').length), readUse(text)] as const)
      const recent = [...noted.get(client_id) ?? []].map(([one, use]) => [one, toUse(use)] as const)
      return Object.fromEntries([...uses, ...recent])
    },

    /** Forgets a deleted client, or one secret, key or token of a client. */
    async forget (client_id: string, id?: string): Promise<void> {
      if (id === undefined) {
        noted.delete(client_id)
        await records.delete(client_id)
      } else {
        noted.get(client_id)?.delete(id)
        await records.update(client_id, { unset: [toField(id)] })
      }
    },

    flush,
    close: flush
  }
}

export type CredentialUses = ReturnType<typeof createUses>
