import { CreateWebhookSchema, ReplayWebhookSchema, type Webhook, type WebhookAttempt } from '../schemas/webhook.ts'
import { defined } from '../lib/defined.ts'
import { repeated, required, subject, value } from './args.ts'
import { type Commands, YES } from './command.ts'
import { confirm } from './confirm.ts'
import { checkInput } from './input.ts'
import { printList, toBatches, toCell } from './output.ts'

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

const WEBHOOK = { webhook: subject('ID', 'The webhook.') }

export const webhookCommands: Commands = {
  'webhook create': {
    summary: 'Create a webhook, and show its secret. The secret signs its messages.',
    example: 'webhook create --name shop --url https://shop.example/events --type "user.*"',
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
    example: 'webhook list',
    flags: {},
    creates: false,
    async run (context) {
      await printList(context, context.services.webhooks.list({ limit: 0 }), COLUMNS)
    }
  },

  'webhook delete': {
    summary: 'Delete a webhook.',
    example: 'webhook delete ID',
    flags: { ...WEBHOOK, yes: YES },
    creates: false,
    async run (context) {
      const { services: { webhooks }, args } = context
      const webhookId = args.required('webhook')
      const { name } = await webhooks.require(webhookId)
      await confirm(context, `Delete the webhook ${toCell(name)}?`)
      await webhooks.remove(webhookId)
      return { webhookId }
    }
  },

  'webhook test': {
    summary: 'Send a test message now, and show the result. Its type is webhook.test.',
    example: 'webhook test ID',
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
    example: 'webhook replay ID --from 2026-01-01T00:00:00Z',
    flags: {
      ...WEBHOOK,
      from: required('PLACE', 'Where to begin: a time (RFC 3339), a cursor of the feed, first or now.'),
      to: value('PLACE', 'Where to end: a time or a cursor. By default there is no end.')
    },
    creates: false,
    async run ({ services: { webhooks }, args }) {
      const to = args.optional('to')
      const range = checkInput(ReplayWebhookSchema, defined({ from: args.required('from'), to }))
      return await webhooks.replay(args.required('webhook'), range)
    }
  },

  'webhook attempts': {
    summary: 'List the last 100 attempts of a webhook. Newest first.',
    example: 'webhook attempts ID',
    flags: WEBHOOK,
    creates: false,
    async run (context) {
      const found = await context.services.webhooks.listAttempts(context.args.required('webhook'))
      await printList(context, toBatches(found), ATTEMPT_COLUMNS)
    }
  }
}
