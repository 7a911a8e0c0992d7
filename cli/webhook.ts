import { CreateWebhookSchema, ReplayWebhookSchema, type Webhook, type WebhookAttempt } from '../schemas/webhook.ts'
import { repeated, required, value } from './args.ts'
import type { Commands } from './command.ts'
import { checkInput } from './input.ts'
import { printList, toBatches } from './output.ts'

const COLUMNS = {
  WEBHOOK_ID: 'webhookId',
  NAME: 'name',
  URL: 'url',
  TYPES: (webhook: Webhook) => webhook.types.join(','),
  STATE: ({ disabled, failure, failingSince }: Webhook) =>
    disabled === true ? failure ?? 'disabled' : failingSince === undefined ? 'ok' : 'failing',
  PARKED: 'parked'
} as const

const ATTEMPT_COLUMNS = {
  AT: 'at',
  EVENT: 'eventId',
  TYPE: 'type',
  ATTEMPT: 'attempt',
  OUTCOME: 'outcome',
  ANSWER: (attempt: WebhookAttempt) => attempt.status ?? attempt.code,
  MS: 'time'
} as const

const WEBHOOK = { webhook: required('ID', 'The webhook.') }

export const webhookCommands: Commands = {
  'webhook create': {
    summary: 'Create a webhook, and show the secret that signs its messages.',
    flags: {
      name: required('NAME', 'Display name.'),
      url: required('URL', 'Where events are sent: https.'),
      type: repeated('TYPE', 'A type of event, all of a kind as user.*, or all as *', 'Default *.')
    },
    async run ({ services: { webhooks }, args }) {
      const types = args.all('type')
      const data = { name: args.required('name'), url: args.required('url'), types: types.length > 0 ? types : ['*'] }
      const { webhookId, secret } = await webhooks.create(checkInput(CreateWebhookSchema, { data }))
      return { webhookId, secret }
    }
  },

  'webhook list': {
    summary: 'List webhooks and the state of their deliveries.',
    flags: {},
    creates: false,
    async run (context) {
      await printList(context, context.services.webhooks.list({ limit: 0 }), COLUMNS)
    }
  },

  'webhook delete': {
    summary: 'Delete a webhook.',
    flags: WEBHOOK,
    creates: false,
    async run ({ services: { webhooks }, args }) {
      const webhookId = args.required('webhook')
      await webhooks.remove(webhookId)
      return { webhookId }
    }
  },

  'webhook test': {
    summary: 'Send a message of the type webhook.test now, and show the result.',
    flags: WEBHOOK,
    creates: false,
    async run ({ services: { webhooks }, args, signal }) {
      const { status, code, time } = await webhooks.test(args.required('webhook'), signal)
      if (code !== undefined) throw new Error(`there was no answer: ${code}`)
      return { status, time }
    }
  },

  'webhook replay': {
    summary: 'Deliver events again. The running service does it.',
    flags: {
      ...WEBHOOK,
      from: required('PLACE', 'Where to begin: a time (RFC 3339), a cursor of the feed, first or now.'),
      to: value('PLACE', 'Where to end: a time or a cursor. By default there is no end.')
    },
    creates: false,
    async run ({ services: { webhooks }, args }) {
      const to = args.optional('to')
      const range = checkInput(ReplayWebhookSchema, { from: args.required('from'), ...(to !== undefined && { to }) })
      return await webhooks.replay(args.required('webhook'), range)
    }
  },

  'webhook attempts': {
    summary: 'List the last 100 attempts of a webhook, newest first.',
    flags: WEBHOOK,
    creates: false,
    async run (context) {
      const found = await context.services.webhooks.listAttempts(context.args.required('webhook'))
      await printList(context, toBatches(found), ATTEMPT_COLUMNS)
    }
  }
}
