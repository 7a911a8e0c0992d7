import type { Outbox } from '../../lib/mail/outbox.ts'
import type { Events } from '../../lib/events/index.ts'
import { type Notices, createNotices } from '../../lib/notice.ts'

/** The mails about changes, where some are sent, or none. */
export const createTestNotices = (now: () => number, isMailed = false): Notices => createNotices({ now, findDevice: () => ({}), isMailed: async () => isMailed })

/** The parts of the services that mails pass. */
interface Mailing {
  events: Pick<Events, 'flush'>
  accounts: { outbox?: Pick<Outbox, 'flush'> | undefined }
}

/** Sends all due mails, also those about changes: publishes what has happened, and then sends. */
export async function settleMails ({ events, accounts: { outbox } }: Mailing): Promise<void> {
  await events.flush()
  await outbox?.flush()
}
