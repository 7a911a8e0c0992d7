import type { Commands } from './command.ts'
import { toList, toRetry } from './work.ts'

export const logoutCommands: Commands = {
  'logout list': toList('logout', { ID: 'id', CLIENT: 'client_id', USER: 'user_id' }, {
    summary: 'List the logout tokens that wait to be delivered, or with --failed the undeliverable ones.',
    failed: 'The undeliverable logout tokens. They are kept for a day.'
  }),

  'logout retry': toRetry('logout', {
    summary: 'Send logout tokens again now that were given up, or that wait for another attempt. The running service does it.',
    id: 'The id of a logout token.',
    note: 'A running service tells them within two seconds.'
  })
}
