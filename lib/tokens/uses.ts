import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import { type AddressMode, keepAddress } from '../events/address.ts'
import { readUserHolder } from '../records/token.ts'
import { type Document, DuplicateKeyError } from '../store/port.ts'
import { TIMERS, type Timers } from '../timers.ts'

/**
 * The last uses of what a client authenticates with, or of a user's personal access tokens: a field for each, with its id. The time, and
 * after a space the address.
 */
type UsesRecord = Document & { [use: `use:${string}`]: string }

/** The last use of a secret, a key or a token with a name. */
export interface Use {
  time: string
  /** The address of a request with a token, as events keep addresses. Absent: not kept, or an API has asked about the token. */
  from?: string | undefined
}

/** A use that is not written yet. Its time and address become text when it is written: most uses are followed by another one. */
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
 * The last uses of clients' secrets, keys and service tokens, and of users' personal access tokens. They are stored apart from these, and
 * written at most once a minute: an authentication causes no write, and changes no client, so that cached callers stay valid. A holder is the
 * id of a client, or of a user as `toUserHolder` writes it.
 */
export function createUses ({ store, now, report, addresses = 'off', timers = TIMERS }: UsesParts) {
  const records = store.collection<UsesRecord>('client_uses')
  let noted = new Map<string, Map<string, Noted>>()
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()

  const toUse = ({ time, address }: Noted): Use => ({ time: toTimestamp(time), from: keepAddress(address, addresses) })

  /** Whether the client or the user was deleted. */
  async function isGone (holder: string): Promise<boolean> {
    const user_id = readUserHolder(holder)
    return await (user_id === undefined ? store.collection('clients').get(holder) : store.collection('users').get(user_id)) === null
  }

  async function writeOne (id: string, uses: Map<string, Noted>): Promise<void> {
    const set = Object.fromEntries([...uses].map(([one, use]) => [toField(one), toText(toUse(use))]))
    if (await records.update(id, { set }) !== null) return
    if (await isGone(id)) return
    try {
      await records.insert({ id, ...set })
    } catch (error) {
      if (!(error instanceof DuplicateKeyError)) throw error
      await records.update(id, { set })
    }
    // Whoever has deleted the client or the user since may have found no record to forget.
    if (await isGone(id)) await records.delete(id)
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
    note (holder: string, id: string, address?: string): void {
      const uses = noted.get(holder) ?? new Map<string, Noted>()
      noted.set(holder, uses.set(id, { time: now(), address }))
      if (timer !== undefined) return
      timer = timers.set(() => { void flush() }, INTERVAL)
      timer.unref?.()
    },

    /** The last uses of what the holder has, those of other processes up to a minute late. */
    async read (holder: string): Promise<Uses> {
      const { id: _, ...stored } = await records.get(holder) ?? { id: '' }
      const uses = Object.entries(stored).map(([field, text]) => [field.slice(toField('').length), readUse(text)] as const)
      const recent = [...noted.get(holder) ?? []].map(([id, use]) => [id, toUse(use)] as const)
      return Object.fromEntries([...uses, ...recent])
    },

    /** Forgets a deleted holder, or one secret, key or token. */
    async forget (holder: string, id?: string): Promise<void> {
      if (id === undefined) {
        noted.delete(holder)
        await records.delete(holder)
      } else {
        noted.get(holder)?.delete(id)
        await records.update(holder, { unset: [toField(id)] })
      }
    },

    flush,
    close: flush
  }
}

export type CredentialUses = ReturnType<typeof createUses>
