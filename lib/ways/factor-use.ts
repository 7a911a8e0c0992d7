import type { Opening } from '../../schemas/unlock.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { defined } from '../defined.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Notice, Notices, NoticeKind } from '../notice.ts'
import { type UserRecord, isActive } from '../records/user.ts'
import { retryWrite } from '../retry.ts'
import type { Store } from '../store/port.ts'
import { type Attempts, type Target, toOpening } from '../throttling/attempts.ts'
import { type CredentialRecord, findWay } from '../way.ts'
import type { WayHolder } from './credentials.ts'
import type { HeldWay } from './existing-ways.ts'
import { toSeedContext } from './totp.ts'
import type { WayService } from './ways.ts'

/** The method that a count or a failure is of. */
type Method = { kind: 'totp' | 'recovery', id: string }

export const toAppTarget = (id: string): Target => ({ kind: 'factor', name: id })

/** Wrong recovery codes count for their person, so that another set or another sign-in allows no more guesses. */
export const toCodesTarget = (user_id: string): Target => ({ kind: 'recovery', name: user_id })

export interface FactorUseParts {
  store: Store
  now: Clock
  ways: Pick<WayService, 'list' | 'update'>
  box: Pick<SecretBox, 'open'>
  attempts: Attempts
  recorder: Pick<Recorder, 'insert'>
  notices: Notices
}

/** What the uses of authenticator apps and of recovery codes share: the counts of failures, the write that spends a code, and the mails. */
export function createFactorUse ({ store, now, ways, box, attempts, recorder, notices }: FactorUseParts) {
  const users = store.collection<UserRecord>('users')

  /** A mail about something that has happened without a change of the user's record. */
  const writeTo = async (kind: NoticeKind, user: UserRecord, values?: Notice['values']): Promise<Notice[]> => (
    isActive(user, toTimestamp(now())) ? await notices.write(kind, user, { ...(values && { values }) }) : [])

  /** Reads only the material of this kind. */
  const listOf = async ({ id, ways: named = {} }: WayHolder, kind: HeldWay['way']['kind']): Promise<HeldWay[]> => (
    await ways.list({ id, ways: Object.fromEntries(Object.entries(named).filter(([, way]) => way.kind === kind)) }))

  /** Ends a count of failures, which opens what too many of them have closed. */
  async function end (user_id: string, target: Target, { kind, id }: Pick<Method, 'kind'> & { id: string | undefined }): Promise<Opening> {
    const standing = await attempts.open(target)
    if (standing.isClosed) await recorder.insert({ type: 'factor.opened', id: user_id, method: defined({ kind, id }) })
    return toOpening('factor', standing, id)
  }

  const openApp = async (user_id: string, id: string): Promise<Opening> => await end(user_id, toAppTarget(id), { kind: 'totp', id })

  /** The count is one of the person, so it ends for somebody without codes too. */
  async function openCodes (user: WayHolder): Promise<Opening[]> {
    const [id] = Object.entries(user.ways ?? {}).find(([, { kind }]) => kind === 'recovery') ?? []
    const was = await end(user.id, toCodesTarget(user.id), { kind: 'recovery', id })
    return id === undefined ? [] : [was]
  }

  /** Opens the factors and the recovery codes of a user that too many failures have closed. @returns what they were before */
  const open = async (user: WayHolder): Promise<Opening[]> => [
    ...await Array.fromAsync(await listOf(user, 'totp'), async ({ id }) => await openApp(user.id, id)), ...await openCodes(user)
  ]

  /** Records what too many wrong codes have closed. Nothing about an app that is still being added is mailed: only its owner types codes for it. */
  const recordClosed = (user_id: string, method: Method) => async () => {
    const user = await users.get(user_id)
    const kind = method.kind === 'totp' ? 'factor-closed' : 'codes-closed'
    const mails = user !== null && findWay(user, method.id) !== undefined ? await writeTo(kind, user) : []
    await recorder.insert({ type: 'factor.closed', id: user_id, method }, mails)
  }

  /**
   * Spends a code by a conditional update of its credential, which is read again after another write.
   * @param spend the change of the material; null for a wrong code
   * @returns the changed credential; null for a wrong code
   */
  async function spend (
    read: () => Promise<CredentialRecord | null>, change: (credential: CredentialRecord) => Promise<CredentialRecord['material'] | null>
  ): Promise<CredentialRecord | null> {
    const { spent } = await retryWrite('the 2FA method', async () => {
      const credential = await read()
      const material = credential && await change(credential)
      if (credential === null || material === null) return { spent: null }
      const spent = await ways.update(credential, { material, last_used_at: toTimestamp(now()) })
      return spent && { spent }
    })
    return spent
  }

  return {
    /** The seed of an app, or the key of a set of codes. */
    openSealed: ({ id, sealed }: { id: string, sealed?: string }): string => box.open(sealed ?? '', toSeedContext(id)),
    writeTo,
    listOf,
    openApp,
    openCodes,
    open,
    recordClosed,
    spend
  }
}

export type FactorUse = ReturnType<typeof createFactorUse>
