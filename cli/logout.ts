import type { LogoutRecord } from '../lib/logout/record.ts'
import type { Commands } from './command.ts'
import { DELIVERY_COLUMNS, readState, retryDeliveries } from './deliveries.ts'
import { printList } from './output.ts'

const COLUMNS = {
  ID: ({ id }: LogoutRecord) => id,
  CLIENT: ({ client_id }: LogoutRecord) => client_id,
  USER: ({ user_id }: LogoutRecord) => user_id,
  ...DELIVERY_COLUMNS
}

/** Without the sessions that ended. */
const show = ({ id, client_id, user_id, attempts, failure, due_at, ends_at }: LogoutRecord) => ({ id, client_id, user_id, attempts, failure, due_at, ends_at })

async function * toShown (batches: AsyncIterable<LogoutRecord[]>): AsyncIterable<LogoutRecord[]> {
  for await (const batch of batches) yield batch.map(show) as LogoutRecord[]
}

export const logoutCommands: Commands = {
  'logout list': {
    summary: 'List the logout tokens that wait to be delivered, or with --failed the undeliverable ones.',
    flags: { failed: { type: 'boolean', text: 'The undeliverable logout tokens. They are kept for a day.' } },
    creates: false,
    async run (context) {
      await printList(context, toShown(context.services.logouts.list(readState(context))), COLUMNS)
    }
  },

  'logout retry': {
    summary: 'Send undeliverable logout tokens again. The running service does it.',
    flags: {
      id: { type: 'string', value: 'ID', text: 'The id of an undeliverable logout token.' },
      all: { type: 'boolean', text: 'All of them.' }
    },
    creates: false,
    async run (context) {
      await retryDeliveries(context, context.services.logouts, 'A running service tells them within two seconds.')
    }
  }
}
