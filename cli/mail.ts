import { explainFailure } from '../lib/failure.ts'
import type { DeliveryRecord, Outbox } from '../lib/mail/outbox.ts'
import { checkAddress } from '../lib/accounts/ask.ts'
import type { Commands, Context } from './command.ts'
import { DELIVERY_COLUMNS, readState, retryDeliveries } from './deliveries.ts'
import { printList, printRecord } from './output.ts'

type Listed = DeliveryRecord & { to?: string }

const COLUMNS = {
  ID: ({ id }: Listed) => id,
  KIND: ({ kind }: Listed) => kind,
  TO: ({ to }: Listed) => to ?? '',
  ...DELIVERY_COLUMNS
}

function requireMail ({ services }: Context): Outbox {
  const { outbox } = services.accounts
  if (outbox === undefined) throw new Error('mail is not configured: see IDENTITY_MAIL_URL')
  return outbox
}

/** Without the sealed fields. */
const show = ({ id, kind, to, attempts, failure, due_at, ends_at }: Listed) => ({ id, kind, to, attempts, failure, due_at, ends_at })

async function * listMails (outbox: Outbox, state: DeliveryRecord['state']): AsyncIterable<Listed[]> {
  for await (const batch of outbox.list(state)) yield batch.map(show) as Listed[]
}

export const mailCommands: Commands = {
  'mail test': {
    summary: 'Send a mail now, and say what the mail server answers.',
    flags: { to: { type: 'string', value: 'ADDRESS', required: true, text: 'The address.' } },
    creates: false,
    async run (context) {
      requireMail(context)
      const to = checkAddress('to', context.args.required('to'))
      try {
        await context.services.accounts.sendTest(to, context.signal)
      } catch (error) {
        throw new Error(`the mail was not sent: ${explainFailure(error)}`)
      }
      printRecord(context, { sent: to })
    }
  },

  'mail list': {
    summary: 'List the waiting mails, or with --failed the undeliverable ones.',
    flags: { failed: { type: 'boolean', text: 'The undeliverable mails. They are kept until 7 days after their link has expired.' } },
    creates: false,
    async run (context) {
      await printList(context, listMails(requireMail(context), readState(context)), COLUMNS)
    }
  },

  'mail retry': {
    summary: 'Send failed mails again, as far as their links have not expired.',
    flags: {
      id: { type: 'string', value: 'ID', text: 'The id of a failed mail.' },
      all: { type: 'boolean', text: 'All of them.' }
    },
    creates: false,
    async run (context) {
      const outbox = requireMail(context)
      const { accounts } = context.services
      await retryDeliveries(context, { ...outbox, retry: accounts.retryMail })
      await outbox.settle()
    }
  }
}
