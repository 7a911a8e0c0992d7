import { checkAddress } from '../lib/accounts/ask.ts'
import { explainFailure } from '../lib/failure.ts'
import { required } from './args.ts'
import type { Commands } from './command.ts'
import { requireWork, toList, toRetry } from './work.ts'

export const mailCommands: Commands = {
  'mail test': {
    summary: 'Send a mail now, and say what the mail server answers.',
    flags: { to: required('ADDRESS', 'The address.') },
    creates: false,
    async run (context) {
      requireWork(context, 'mail')
      const to = checkAddress('to', context.args.required('to'))
      try {
        await context.services.accounts.sendTest(to, context.signal)
      } catch (error) {
        throw new Error(`the mail was not sent: ${explainFailure(error)}`)
      }
      return { sent: to }
    }
  },

  'mail list': toList('mail', { ID: 'id', KIND: 'kind', TO: 'to' }, {
    summary: 'List the waiting mails, or with --failed the undeliverable ones.',
    failed: 'The undeliverable mails. They are kept until 7 days after their link has expired.'
  }),

  'mail retry': toRetry('mail', {
    summary: 'Send mails again now that were given up, as far as their links have not expired, or that wait for another attempt.',
    id: 'The id of a mail.'
  }, async ({ services }) => await services.accounts.outbox?.settle())
}
