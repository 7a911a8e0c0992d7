import { checkAddress } from '../lib/accounts/ask.ts'
import { explainFailure } from '../lib/failure.ts'
import { subject } from './args.ts'
import type { Commands } from './command.ts'
import { requireWork, toList, toRetry } from './work.ts'

export const mailCommands: Commands = {
  'mail test': {
    summary: 'Send a test email now. Shows what the mail server answers.',
    example: 'mail test ann@example.com',
    flags: { to: subject('ADDRESS', 'The address.') },
    creates: false,
    async run (context) {
      requireWork(context, 'mail')
      const to = checkAddress('to', context.args.required('to'))
      try {
        await context.services.accounts.sendTest(to, context.signal)
      } catch (error) {
        throw new Error(`the email was not sent: ${explainFailure(error)}`)
      }
      return { sent: to }
    }
  },

  'mail list': toList('mail', { ID: 'id', KIND: 'kind', TO: 'to' }, {
    summary: 'List waiting emails. With --failed: undeliverable ones.',
    failed: 'The undeliverable emails. They are kept until 7 days after their link has expired.'
  }),

  'mail retry': toRetry('mail', {
    summary: 'Send waiting and undeliverable emails again now. Those whose links have not expired.',
    id: 'The id of an email.'
  }, async ({ services }) => await services.accounts.outbox?.settle())
}
