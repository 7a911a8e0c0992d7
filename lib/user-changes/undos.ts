import { type Clock, toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import { IdentityError } from '../errors.ts'
import { generateId } from '../ids.ts'
import type { Notice, NoticeKind, Notices } from '../notice.ts'
import { nameDevice } from '../device.ts'
import type { Proof } from '../proofs.ts'
import { type UserFields, type UndoRecord, type UserRecord, findMailbox } from '../records/user.ts'
import { type AddressProof, keepProof } from '../user-changes/address-proof.ts'
import { type Earlier, listEarlier } from './earlier-undos.ts'

const HOUR = 60 * 60_000

/** The hours for which an act can be undone by its mail. */
export const UNDO_HOURS = 72

/**
 * The most entries of a list, and the most changes of the address among them. None is evicted: a thief would push out the owner's. Every
 * look-up of a token reads the list with its user, so it stays small.
 */
const MAX_UNDOS = 30
const MAX_CHANGES = 10

/** Characters of the place of an act. */
const PLACE_LENGTH = 60

/** An entry, as it is read: nothing of it depends on the entry before. */
export interface Undo extends UndoRecord {
  /** The ways that are still there. */
  added: string[]
  before: AddressProof
  /** The mailbox before the act, which has got its link. */
  mailbox: string | undefined
}

type Undoable = Earlier & Pick<UserRecord, 'account' | 'undos'>

interface UndoFields extends UserFields { set: Pick<UserRecord, 'undos'> }

/**
 * What can be undone: from the earliest act on whose link still works. A later one counts also after its own link has ended, because an
 * undo takes everything that was added since the earliest act.
 */
export function listUndos (record: Undoable, now: number): Undo[] {
  const { account, ways = {} } = record
  const time = toTimestamp(now)
  let before: AddressProof = {}
  const all = [...listEarlier(record), ...record.undos ?? []].map((one) => {
    before = one.before ?? before
    return { ...one, added: (one.added ?? []).filter((id) => Object.hasOwn(ways, id)), before, mailbox: findMailbox({ account, ...before }) }
  })
  const first = all.findIndex(({ until }) => until > time)
  return first < 0 ? [] : all.slice(first)
}

const isSame = (one: AddressProof, other: AddressProof): boolean => (
  one.email === other.email && one.email_verified_at === other.email_verified_at && one.email_verified_by === other.email_verified_by)

/** The fields of a record with these entries. */
export function toUndoFields (record: Undoable, list: readonly Undo[]): UndoFields {
  const undos = list.map(({ added, before, mailbox: _mailbox, ...one }, index) => {
    const earlier = list[index - 1]
    const isRepeated = earlier !== undefined && isSame(before, earlier.before)
    return defined({ ...one, added: added.length > 0 ? added : undefined, before: isRepeated ? undefined : keepProof(before) })
  })
  const isEmpty = undos.length === 0
  const ended = (['address_changes', 'first_factors', 'undos'] as const).filter((field) => field !== 'undos' || isEmpty)
  return { set: isEmpty ? {} : { undos }, unset: ended.filter((field) => record[field] !== undefined) }
}

/** The entry with further ways. */
const withAdded = (entry: Undo, added: readonly string[]): Undo => ({ ...entry, added: [...new Set([...entry.added, ...added])] })

/** The entries without some. What these had added belongs to the one before, because it was added since that. */
export function keepUndos (list: readonly Undo[], isKept: (entry: Undo) => boolean): Undo[] {
  const kept: Undo[] = []
  for (const entry of list) {
    const last = kept.at(-1)
    if (isKept(entry)) kept.push(entry)
    else if (last !== undefined) kept[kept.length - 1] = withAdded(last, entry.added)
  }
  return kept
}

const FACTORS: readonly Proof['kind'][] = ['totp', 'passkey', 'recovery']

/** The factors of a user that were proved, and their codes. Codes that were made anew stand for those before. */
export function listProving ({ ways = {} }: Pick<UserRecord, 'ways'>, proofs: readonly Proof[]): string[] {
  const codes = Object.entries(ways).filter(([, { kind }]) => kind === 'recovery').map(([id]) => id)
  const ids = proofs.filter(({ kind }) => FACTORS.includes(kind)).flatMap(({ kind, way }) => kind === 'recovery' ? codes : [way])
  return [...new Set(ids)].filter((id) => Object.hasOwn(ways, id))
}

/** An act of somebody who may be a thief. */
interface Act {
  kind: UndoRecord['kind']
  /** The ids of the ways that it adds. */
  added?: readonly string[]
  /** The mail with the link, and the one without, for an act that has no entry of its own. */
  mail: NoticeKind
  plain?: NoticeKind
  values?: NonNullable<Notice['values']>
  /** 0: it has no link. */
  hours?: number
  /** Whether a session asks for it: it is refused where the list is full. What a mailed link or a provider does is not. */
  isAsked: boolean
  /** Whether everything from before goes: the list begins with this act. */
  isFirst?: boolean
}

/** The one writer of the list: what opens a way in, or moves the address, and the mail about it, which undoes it. */
export function createUndos ({ notices, now }: { notices: Notices, now: Clock }) {
  /** @throws ErrLimit */
  function checkRoom (list: readonly Undo[], { kind, isAsked }: Act): boolean {
    const isFull = list.length >= MAX_UNDOS || (kind === 'address' && list.filter((one) => one.kind === 'address').length >= MAX_CHANGES)
    if (isFull && isAsked) throw new IdentityError('ErrLimit', 'user: too much was added or changed within a short time, try again in a day')
    return !isFull
  }

  return {
    /**
     * Without a link, as where nobody gets mails, what it adds belongs to the last entry.
     * @param record that the write replaces: its mailbox gets the mail, and keeps the address
     * @throws ErrLimit
     */
    async write (record: UserRecord, act: Act): Promise<UndoFields & { notices: Notice[] }> {
      const { kind, added = [], mail, plain, values, hours = UNDO_HOURS, isFirst = false } = act
      const list = isFirst ? [] : listUndos(record, now())
      const hasRoom = checkRoom(list, act)
      const [id, until] = [generateId(now()), toTimestamp(now() + hours * HOUR)]
      const mails = hasRoom && hours > 0 ? await notices.write(mail, record, { of: id, until, values: { hours: String(hours), ...values } }) : []
      if (mails.length > 0) {
        const place = nameDevice(notices.findDevice()).slice(0, PLACE_LENGTH)
        const entry: Undo = {
          id,
          at: toTimestamp(now()),
          until,
          kind,
          added: [...added],
          before: keepProof(record),
          mailbox: findMailbox(record),
          place: place === '' ? undefined : place
        }
        return { ...toUndoFields(record, [...list, entry]), notices: mails }
      }
      const last = list.at(-1)
      return {
        ...toUndoFields(record, last === undefined ? list : [...list.slice(0, -1), withAdded(last, added)]),
        notices: plain === undefined ? [] : await notices.write(plain, record, defined({ values }))
      }
    },

    /**
     * What was added by a proof of factors of the account goes with the act that has added these, and otherwise with none: a mailbox alone
     * never removes an established factor.
     * @param proving the ids of these factors
     */
    follow (record: UserRecord, added: readonly string[], proving: readonly string[]): UndoFields {
      const list = listUndos(record, now())
      const isOf = (entry: Undo) => proving.some((id) => entry.added.includes(id))
      const isEstablished = !proving.every((id) => list.some((entry) => entry.added.includes(id)))
      const index = isEstablished ? -1 : list.findIndex(isOf)
      return toUndoFields(record, list.map((entry, at) => at === index ? withAdded(entry, added) : entry))
    }
  }
}

export type Undos = ReturnType<typeof createUndos>
