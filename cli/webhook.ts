import { CreateWebhookSchema, ReplayWebhookSchema, type Webhook, type WebhookAttempt } from '../schemas/webhook.ts'
import type { Commands } from './command.ts'
import { checkInput } from './input.ts'
import { printList, printRecord } from './output.ts'

const COLUMNS = {
  WEBHOOK_ID: (webhook: Webhook) => webhook.webhookId,
  NAME: (webhook: Webhook) => webhook.name,
  URL: (webhook: Webhook) => webhook.url,
  TYPES: (webhook: Webhook) => webhook.types.join(','),
  STATE: (webhook: Webhook) => webhook.disabled === true ? webhook.failure ?? 'disabled' : webhook.failingSince === undefined ? 'ok' : 'failing',
  PARKED: (webhook: Webhook) => webhook.parked
}

const ATTEMPT_COLUMNS = {
  AT: (attempt: WebhookAttempt) => attempt.at,
  EVENT: (attempt: WebhookAttempt) => attempt.eventId,
  TYPE: (attempt: WebhookAttempt) => attempt.type,
  ATTEMPT: (attempt: WebhookAttempt) => attempt.attempt,
  OUTCOME: (attempt: WebhookAttempt) => attempt.outcome,
  ANSWER: (attempt: WebhookAttempt) => attempt.status ?? attempt.code,
  MS: (attempt: WebhookAttempt) => attempt.time
}

const WEBHOOK = { webhook: { type: 'string', value: 'ID', required: true, text: 'The webhook.' } } as const

export const webhookCommands: Commands = {
  'webhook create': {
    summary: 'Create a webhook, and show the secret that signs its messages.',
    flags: {
      name: { type: 'string', value: 'NAME', required: true, text: 'Display name.' },
      url: { type: 'string', value: 'URL', required: true, text: 'Where events are sent: https.' },
      type: { type: 'string', value: 'TYPE', multiple: true, text: 'A type of event, all of a kind as user.*, or all as *; may be repeated. Default *.' }
    },
    async run (context) {
      const { services: { webhooks }, args } = context
      const types = args.all('type')
      const data = { name: args.required('name'), url: args.required('url'), types: types.length > 0 ? types : ['*'] }
      const { webhookId, secret } = await webhooks.create(checkInput(CreateWebhookSchema, { data }))
      printRecord(context, { webhook_id: webhookId, secret })
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
    async run (context) {
      const webhookId = context.args.required('webhook')
      await context.services.webhooks.remove(webhookId)
      printRecord(context, { deleted: webhookId })
    }
  },

  'webhook test': {
    summary: 'Send a message of the type webhook.test now, and show the result.',
    flags: WEBHOOK,
    creates: false,
    async run (context) {
      const { status, code, time } = await context.services.webhooks.test(context.args.required('webhook'), context.signal)
      if (code !== undefined) throw new Error(`there was no answer: ${code}`)
      printRecord(context, { status, time })
    }
  },

  'webhook replay': {
    summary: 'Deliver events again. The running service does it.',
    flags: {
      ...WEBHOOK,
      from: { type: 'string', value: 'PLACE', required: true, text: 'Where to begin: a time (RFC 3339), a cursor of the feed, first or now.' },
      to: { type: 'string', value: 'PLACE', text: 'Where to end: a time or a cursor. By default there is no end.' }
    },
    creates: false,
    async run (context) {
      const { services: { webhooks }, args } = context
      const to = args.optional('to')
      const range = checkInput(ReplayWebhookSchema, { from: args.required('from'), ...(to !== undefined && { to }) })
      printRecord(context, await webhooks.replay(args.required('webhook'), range))
    }
  },

  'webhook attempts': {
    summary: 'List the last 100 attempts of a webhook, newest first.',
    flags: WEBHOOK,
    creates: false,
    async run (context) {
      const found = await context.services.webhooks.listAttempts(context.args.required('webhook'))
      await printList(context, (async function * () { if (found.length > 0) yield found })(), ATTEMPT_COLUMNS)
    }
  }
}
