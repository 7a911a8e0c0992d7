import type { Commands } from './command.ts'
import { toList, toRetry } from './work.ts'

export const logoutCommands: Commands = {
  'logout list': toList('logout', { ID: 'id', CLIENT: 'client_id', USER: 'user_id' }, {
    summary: 'List waiting logout tokens. With --failed: undeliverable ones.',
    failed: 'The undeliverable logout tokens. They are kept for a day.'
  }),

  'logout retry': toRetry('logout', {
    summary: 'Send waiting and undeliverable logout tokens again. The running service does it.',
    id: 'The id of a logout token.',
    note: 'A running service tells them within two seconds.'
  })
}
