import type { Base } from '../base.ts'
import { defined } from '../defined.ts'
import { readSome } from '../lists/first.ts'
import { findNearest } from '../nearest.ts'
import type { UserRecord } from '../records/user.ts'
import type { Attempts } from '../throttling/attempts.ts'
import type { Tickets } from '../tickets/tickets.ts'

/** Users that are read by a prefix of the name. */
const MOST = 50

/** Users that an answer names: whoever asks for many names must not get a list of all users. */
const SHOWN = 5

/** The leading characters by which other spellings are looked for. */
const STEM = 3

/** Sorts after every text that begins with a prefix. */
const LAST = '\uffff'

/** A user whom somebody may mean who types a name that no account has. */
export interface Similar {
  user: UserRecord
  /** What the typed name is to them: an address that they had, an address that is not proved, or another spelling of their account. */
  as: 'former_address' | 'unproved_address' | 'other_spelling'
}

/** What is known about a name that no account has. */
export interface NameAnswer {
  /** Failed attempts under this name, as long as they are counted, and the last one. Absent: none. */
  tried?: { failures: number, last_at: string }
  similar: Similar[]
  /** Until when a link of a sign-up with this address works: ISO 8601. */
  sign_up_until?: string
}

/** The addresses that a user had, as far as a change can still be undone. */
const listFormer = ({ undos = [], address_changes = [] }: UserRecord): (string | undefined)[] => (
  [...undos.map(({ before }) => before?.email), ...address_changes.map(({ email }) => email)])

function classify (user: UserRecord, name: string): Similar['as'] {
  if (listFormer(user).includes(name)) return 'former_address'
  return user.email === name ? 'unproved_address' : 'other_spelling'
}

/** Tells what is known about a name that no account has. */
export function createNameAnswers ({ store, attempts, tickets }: Pick<Base, 'store'> & {
  attempts: Pick<Attempts, 'read'>
  tickets: Pick<Tickets, 'findUntil'>
}) {
  const users = store.collection<UserRecord>('users')

  const listFrom = async (key: 'account' | 'email', first: string, last = first + LAST): Promise<UserRecord[]> => await readSome(users, {
    filter: { since: { [key]: first }, before: { [key]: last } }, sort: [{ key, direction: 'asc' }], limit: MOST, urgent: true
  })

  /** Users with the same part before the `@`, and the one whose account is most like the name. */
  async function listSimilar (name: string): Promise<UserRecord[]> {
    const [local = ''] = name.split('@')
    if (local.length < STEM) return []
    const isSame = ({ account }: UserRecord): boolean => account === local || account.startsWith(`${local}@`)
    const [ofAccount, ofAddress, near] = await Promise.all([
      listFrom('account', local), listFrom('email', `${local}@`), listFrom('account', local.slice(0, STEM))
    ])
    const nearest = findNearest(name, near.map(({ account }) => account))
    const all = [...ofAccount.filter(isSame), ...ofAddress, ...near.filter(({ account }) => account === nearest)]
    return [...new Map(all.map((user) => [user.id, user])).values()].slice(0, SHOWN)
  }

  return async function describeName (name: string): Promise<NameAnswer> {
    const [{ failures, failed_at }, similar, sign_up_until] = await Promise.all([
      attempts.read({ kind: 'account', name }), listSimilar(name), tickets.findUntil('sign-up', name)
    ])
    return defined({
      tried: failed_at === undefined ? undefined : { failures, last_at: failed_at },
      similar: similar.map((user) => ({ user, as: classify(user, name) })),
      sign_up_until
    })
  }
}
