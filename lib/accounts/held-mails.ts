import type { UserMail } from '../../schemas/support.ts'
import type { Event } from '../../schemas/event.ts'
import { defined } from '../defined.ts'
import { readSome } from '../lists/first.ts'
import type { DeliveryRecord } from '../mail/delivery.ts'
import type { Actor } from '../roles.ts'
import type { Store } from '../store/port.ts'
import type { People } from '../users/people.ts'

/** Mails of each state. */
const SHOWN = 100

const STATES = { due: 'waiting', failed: 'failed' } as const

function showQueued (record: DeliveryRecord, state: 'due' | 'failed'): UserMail {
  const { id: mail_id, kind, created_at: time, attempts, due_at, ends_at, failure } = record
  const shown = { mail_id, kind, state: STATES[state], time, attempts }
  return defined(state === 'due' ? { ...shown, due_at, ends_at } : { ...shown, failure })
}

/** The mails to a person: what was sent by the events, and what waits or failed by the queue. Never a text, a link or an address. */
export function createHeldMails ({ store, people, listSent }: {
  store: Store
  people: Pick<People, 'requireReadable'>
  /** The last events `mail.sent` of a user, the newest first. */
  listSent: (user_id: string, limit: number) => Promise<Event[]>
}) {
  const records = store.collection<DeliveryRecord>('deliveries')

  async function listQueued (user_id: string, state: 'due' | 'failed', limit = SHOWN): Promise<UserMail[]> {
    const found = await readSome(records, {
      filter: { equal: { user_id, state } }, sort: [{ key: 'created_at', direction: 'desc' }], limit, urgent: true
    })
    return found.map((record) => showQueued(record, state))
  }

  return {
    /** The mails to a user that wait, or that were given up, the newest first. */
    listQueued,

    /**
     * The newest first.
     * @throws ErrNotFound, ErrPerm
     */
    async listOf (user_id: string, actor: Actor): Promise<UserMail[]> {
      await people.requireReadable(user_id, actor)
      const [sent, waiting, failed] = await Promise.all([listSent(user_id, SHOWN), listQueued(user_id, 'due'), listQueued(user_id, 'failed')])
      const taken = sent.map(({ target, mail = '', time }): UserMail => ({ mail_id: target.id, kind: mail, state: 'sent', time }))
      return [...taken, ...waiting, ...failed].sort((one, other) => one.time < other.time ? 1 : -1)
    }
  }
}

export type HeldMails = ReturnType<typeof createHeldMails>
