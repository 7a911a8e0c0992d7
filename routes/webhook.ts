import type { FastifyInstance } from 'fastify'
import { Data } from '../schemas/common.ts'
import {
  CreateWebhookSchema, PatchWebhookSchema, ReplayWebhookSchema, WebhookAttemptsSchema, WebhookCreatedSchema, WebhookListQuerySchema,
  WebhookReplayedSchema, WebhookSchema, WebhookSecretSchema, WebhookTestedSchema
} from '../schemas/webhook.ts'
import { count, createRows, data, pages } from './rows.ts'
import type { RouteSettings } from './settings.ts'

/** Webhooks, see docs/webhooks.md. */
export async function webhookRoutes (app: FastifyInstance, { stallTimeout }: RouteSettings): Promise<void> {
  const { webhooks } = app.identity
  const add = createRows(app, 'webhook', { stallTimeout })

  add('createWebhook', 'POST /webhook', 'Create a webhook; the response contains its secret', {
    body: CreateWebhookSchema,
    answer: data(WebhookCreatedSchema, 'The id of the new webhook, and its secret.'),
    errors: ['ErrLimit'],
    run: ({ body }) => webhooks.create(body)
  })

  add('countWebhooks', 'GET /webhook/count', 'Count webhooks', {
    answer: count('The number of webhooks.'),
    run: () => webhooks.count()
  })

  add('listWebhooks', 'GET /webhook/list', 'List webhooks', {
    query: WebhookListQuerySchema,
    answer: pages(WebhookSchema, 'The webhooks.'),
    run: ({ query }) => webhooks.page(query)
  })

  add('getWebhook', 'GET /webhook/:webhookId', 'Read a webhook and the state of its deliveries', {
    answer: data(Data(WebhookSchema), 'The webhook.'),
    errors: ['ErrNotFound'],
    run: ({ params }) => webhooks.require(params.webhookId)
  })

  add('patchWebhook', 'PATCH /webhook/:webhookId', 'Change, disable or enable a webhook', {
    body: PatchWebhookSchema,
    errors: ['ErrNotFound'],
    run: ({ params, body }) => webhooks.patch(params.webhookId, body)
  })

  add('deleteWebhook', 'DELETE /webhook/:webhookId', 'Delete a webhook', {
    errors: ['ErrNotFound'],
    run: ({ params }) => webhooks.remove(params.webhookId)
  })

  add('listWebhookAttempts', 'GET /webhook/:webhookId/attempts', 'Read the last 100 attempts of a webhook, newest first', {
    answer: data(WebhookAttemptsSchema, 'The attempts.'),
    errors: ['ErrNotFound'],
    run: ({ params }) => webhooks.listAttempts(params.webhookId)
  })

  add('replayWebhook', 'POST /webhook/:webhookId/replay', 'Deliver events again', {
    body: ReplayWebhookSchema,
    answer: data(WebhookReplayedSchema, 'The new position of the webhook in the feed.'),
    errors: ['ErrNotFound'],
    run: ({ params, body }) => webhooks.replay(params.webhookId, body)
  })

  add('testWebhook', 'POST /webhook/:webhookId/test', 'Send a message of the type webhook.test now', {
    answer: data(WebhookTestedSchema, 'The result: an HTTP status, or the code of a failure.'),
    errors: ['ErrNotFound'],
    run: ({ params }) => webhooks.test(params.webhookId)
  })

  add('rotateWebhookSecret', 'POST /webhook/:webhookId/secret', 'Replace the secret; the previous one also signs for 24 hours', {
    answer: data(WebhookSecretSchema, 'The new secret.'),
    errors: ['ErrNotFound'],
    run: ({ params }) => webhooks.rotateSecret(params.webhookId)
  })
}
