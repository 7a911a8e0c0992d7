import type { Base } from '../base.ts'
import { type Decision, changeRecord } from '../change-record.ts'
import { toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import { type Happening, toRecorded } from '../events/types.ts'
import { type Notice, findRow } from '../notice.ts'
import { type UserChange, type UserRecord, applyChange } from '../records/user.ts'
import { isRoleGiven } from '../roles.ts'
import { DuplicateKeyError, type MaybePromise } from '../store/port.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { hasWords, toUserWords } from '../words.ts'
import { checkProof, withProof } from './address-proof.ts'
import { createAdministrators } from './administrators.ts'

/** Completes a change that replaces or removes a password: the name of the scheme of its hash goes too. */
export function withPasswordScheme<T extends UserChange> (record: UserRecord, change: T): T {
  const { set, unset = [] } = change
  const isGone = unset.includes('password') || (set?.password !== undefined && set.password_scheme === undefined)
  return isGone && record.password_scheme !== undefined ? { ...change, unset: [...unset, 'password_scheme'] } : change
}

/** The fields whose change ends the mark of a user whom the former system still vouches for. */
const ENDS_MARK = ['password', 'ways', 'email', 'email_verified_at'] as const

/** A change of a user, which also ends that mark. */
function withMarkEnded<T extends UserChange> (record: UserRecord, change: T): T {
  const { set = {}, unset = [], increment = {} } = change
  const isEnded = increment.epoch !== undefined || ENDS_MARK.some((field) => set[field] !== undefined || unset.includes(field))
  return isEnded && record.imported_lazy === true ? { ...change, unset: [...unset, 'imported_lazy'] } : change
}

/** Whoever has seen a link of the user could otherwise use it to get the new role. */
const endsLinks = (record: UserRecord, { set }: UserChange): boolean => set?.roles !== undefined && isRoleGiven(record.roles, set.roles)

/** What each change by a rule does beside what was decided. */
function complete (record: UserRecord, decision: Decision<UserRecord>, time: string): Decision<UserRecord> {
  const { set, increment, ...rest } = withMarkEnded(record, withPasswordScheme(record, decision))
  return {
    ...rest,
    set: { ...set, modified_at: time, ...(increment?.epoch !== undefined && { epoch_at: time }) },
    increment: { ...increment, ...(endsLinks(record, decision) && { link_epoch: 1 }) }
  }
}

/** A change of a user, whose words follow their names, also where an earlier release has changed these. */
function withWords<T extends UserChange> (record: UserRecord, change: T): T {
  const words = toUserWords(applyChange(record, change))
  return hasWords(record.words, words) ? change : { ...change, set: { ...change.set, words } }
}

export const userNotFound = (): IdentityError => new IdentityError('ErrNotFound', 'userId: no such user')

interface UserChangesParts extends Pick<Base, 'store' | 'now' | 'roles' | 'report'> {
  recorder: Pick<Base['recorder'], 'attach'>
  tokens: Pick<Tokens, 'deleteOfUser'>
  /** How many personal access tokens of a user are valid. Absent: there are none. */
  countTokens?: ((record: UserRecord) => Promise<number>) | undefined
}

/** The mails about a change that ends the user's sessions say how many personal access tokens end with these. */
function withTokens (decision: Decision<UserRecord>, user_id: string, tokens: number): Decision<UserRecord> {
  const { notices } = decision
  if (notices === undefined || tokens === 0) return decision
  const isTheirs = ({ kind, user_id: of }: Notice): boolean => of === user_id && findRow(kind).isForFormer !== true
  return { ...decision, notices: notices.map((notice) => isTheirs(notice) ? { ...notice, tokens } : notice) }
}

/** Checks the record that a write replaces. A role or a factor may have come since the proof. It throws unless the write may be made. */
export type ConfirmRecord = (record: UserRecord) => MaybePromise<void>

/** Decides on the record that the write replaces. It may be called several times. Null: nothing is written. */
export type Decide = (record: UserRecord) => MaybePromise<Decision<UserRecord> | null>

export interface ChangeOptions {
  /** The error where there is no such user. */
  notFound?: (() => Error) | undefined
  /** Whether the last administrator may go too. */
  isForced?: boolean | undefined
  /** Called after a change that ends the user's sessions, and before their records are removed. It moves the sessions that go on to the new epoch. */
  keep?: ((written: UserRecord) => Promise<void>) | undefined
  /** The user, where they were just read. */
  known?: UserRecord | undefined
}

/**
 * The one way to create and to change users by a rule, for the rooms of tokens, ways and users. Whatever is decided, an administrator remains,
 * an address keeps its proof or loses it, and what ends the sessions, a password, a way or an address ends the mark of the former system too.
 *
 * The increment of the epoch ends the sessions. Their records are removed in the background of the process that made the change: it alone
 * knows which of them go on, and a command may end before any other process publishes the event.
 */
export function createUserChanges ({ store, now, recorder, roles, report, tokens, countTokens }: UserChangesParts) {
  const users = store.collection<UserRecord>('users')
  const { mark, markChange, guard } = createAdministrators({ store, now, role: roles.admin, onError: report('users') })

  return {
    /** To be read only. */
    users,

    /** Of operations that take away an administrator, and first something else: see Administrators.guard. */
    guard,

    async requireUser (user_id: string): Promise<UserRecord> {
      const user = await users.get(user_id)
      if (user === null) throw userNotFound()
      return user
    },

    /**
     * @param exists the error where another user has the account or the address
     * @param notices the mails about it
     */
    async insertUser (record: UserRecord, happened: Happening | readonly Happening[], exists: () => Error, notices: readonly Notice[] = []): Promise<void> {
      checkProof(record)
      try {
        await users.insert({ ...mark(record), words: toUserWords(record), ...recorder.attach(null, toRecorded([happened].flat(), notices)) })
      } catch (error) {
        if (error instanceof DuplicateKeyError && (error.field === 'account' || error.field === 'addresses')) throw exists()
        throw error
      }
    },

    /**
     * Changes a user.
     * @returns the written user
     * @throws what `decide` throws, ErrNotFound, ErrPerm for the last administrator, ErrBusy
     */
    async changeUser (user_id: string, decide: Decide, { notFound = userNotFound, isForced, keep, known }: ChangeOptions = {}): Promise<UserRecord> {
      return await guard(async (permit) => {
        let isEnded = false
        const written = await changeRecord({ collection: users, recorder, what: 'the user', notFound, known }, user_id, async (record) => {
          const decided = await decide(record)
          if (decided === null) return null
          await permit(record, decided)
          isEnded = decided.increment?.epoch !== undefined
          const isTold = isEnded && countTokens !== undefined && decided.notices !== undefined && decided.notices.length > 0
          const decision = isTold ? withTokens(decided, user_id, await countTokens(record)) : decided
          return complete(record, withWords(record, withProof(record, markChange(record, decision))), toTimestamp(now()))
        })
        if (isEnded) {
          await keep?.(written)
          tokens.deleteOfUser(user_id, written.epoch)
        }
        return written
      }, isForced)
    }
  }
}

export type UserChanges = ReturnType<typeof createUserChanges>
