import { setTimeout as sleep } from 'node:timers/promises'
import { IdentityError } from '../errors.ts'
import { type UserRecord, isActive } from '../records/user.ts'
import type { Actor } from '../roles.ts'
import { toTimestamp } from '../clock.ts'
import { scan } from '../store/scan.ts'
import type { ImportServices } from './parts.ts'

/** Mails a minute, unless the caller says otherwise: a mailbox provider takes a burst from a new sender for spam. */
const PER_MINUTE = 60

export interface InviteOptions {
  perMinute?: number | undefined
  /** The language of the mails. */
  language?: string | undefined
  signal?: AbortSignal | undefined
  /** Resolves after so many milliseconds. */
  wait?: (time: number, signal?: AbortSignal) => Promise<unknown>
}

const waitUntil = async (time: number, signal?: AbortSignal) => await sleep(time, undefined, { signal })

/** What became of a person. Without an address there is no mail. */
export interface Invited {
  user_id: string
  result: 'invited' | 'skipped'
  reason?: string
}

/** Why somebody needs no invitation. */
async function findReason (user: UserRecord, now: string, hasWayIn: ImportServices['hasWayIn']): Promise<string | undefined> {
  if (await hasWayIn(user)) return 'has a sign-in method'
  if (user.invited_at !== undefined) return 'was invited'
  return isActive(user, now) ? undefined : 'is disabled or has expired'
}

/** Invites the people of a source who cannot sign in yet. A second call goes on where the first one ended. */
export async function * inviteImported (
  { store, now, invite, hasWayIn }: Pick<ImportServices, 'store' | 'now' | 'invite' | 'hasWayIn'>, source: string, actor: Actor, { perMinute = PER_MINUTE, language, signal, wait = waitUntil }: InviteOptions = {}
): AsyncGenerator<Invited> {
  const users = store.collection<UserRecord>('users')
  for await (const batch of scan(users, { equal: { imported_source: source } }, { urgent: true })) {
    for (const user of batch) {
      signal?.throwIfAborted()
      const reason = await findReason(user, toTimestamp(now()), hasWayIn)
      if (reason !== undefined) {
        yield { user_id: user.id, result: 'skipped', reason }
        continue
      }
      try {
        const isMailed = await invite(user.id, actor, language)
        yield isMailed ? { user_id: user.id, result: 'invited' } : { user_id: user.id, result: 'skipped', reason: 'has no address' }
        if (isMailed) await wait(60_000 / perMinute, signal)
      } catch (error) {
        if (!(error instanceof IdentityError) || !['ErrNotFound', 'ErrParam', 'ErrLimit'].includes(error.code)) throw error
        yield { user_id: user.id, result: 'skipped', reason: error.message }
      }
    }
  }
}
