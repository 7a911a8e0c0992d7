import type { Outbox } from '../../lib/mail/outbox.ts'
import type { Events } from '../../lib/events/index.ts'

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
