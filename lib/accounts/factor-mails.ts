import { toTimestamp } from '../clock.ts'
import type { Job } from '../mail/outbox.ts'
import { type UserRecord, isActive } from '../records.ts'
import { findMailbox } from '../users/addresses.ts'
import { type AccountContext, notify, prepareNotice } from './context.ts'

/** The mails about second factors. They say when the request was made, and where it came from. */
export function createFactorMails (context: AccountContext) {
  const { users, findPlace, now } = context

  /** A mail to the mailbox that the user has now; undefined without one. */
  function toJob (kind: string, user: UserRecord, more: Omit<Job, 'kind'> = {}): Job | undefined {
    const to = findMailbox(user)
    return to === undefined ? undefined : { kind, user_id: user.id, to, time: toTimestamp(now()), place: { ...findPlace() }, ...more }
  }

  return {
    toJob,

    /** Stores a mail about a change that follows. */
    async prepare (kind: string, user: UserRecord, more?: Omit<Job, 'kind'>): Promise<{ release: () => void } | undefined> {
      const job = toJob(kind, user, more)
      return job && await prepareNotice(context, job)
    },

    /** Tells a user of something that has happened. */
    async tell (kind: string, user_id: string, more?: Omit<Job, 'kind'>): Promise<void> {
      const user = await users.get(user_id)
      const job = user !== null && isActive(user, toTimestamp(now())) ? toJob(kind, user, more) : undefined
      if (job !== undefined) await notify(context, job)
    }
  }
}

export type FactorMails = ReturnType<typeof createFactorMails>
