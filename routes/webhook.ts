import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { CountSchema, Data } from '../schemas/common.ts'
import {
  CreateWebhookSchema, PatchWebhookSchema, ReplayWebhookSchema, WebhookAttemptsSchema, WebhookCreatedSchema, WebhookListQuerySchema, WebhookParamsSchema,
  WebhookReplayedSchema, WebhookSchema, WebhookSecretSchema, WebhookTestedSchema
} from '../schemas/webhook.ts'
import { linkNext, sendList } from './list-reply.ts'
import { NoContentSchema, errors, json, pagedList, writeErrors } from './responses.ts'
import type { RouteSettings } from './settings.ts'

const tags = ['webhook']

/** Webhooks, see docs/webhooks.md. */
export const webhookRoutes: FastifyPluginAsyncTypebox<RouteSettings> = async (app, { stallTimeout }) => {
  const { webhooks } = app.identity

  app.post('/webhook', {
    config: { access: 'createWebhook' },
    schema: {
      operationId: 'createWebhook',
      tags,
      summary: 'Make a webhook; the answer has its secret',
      body: CreateWebhookSchema,
      response: { 200: json(WebhookCreatedSchema, 'The id of the new webhook, and its secret.'), ...writeErrors('ErrLimit') }
    }
  }, async (request, reply) => {
    reply.header('cache-control', 'no-store')
    return { data: await webhooks.create(request.body) }
  })

  app.get('/webhook/count', {
    config: { access: 'countWebhooks' },
    schema: {
      operationId: 'countWebhooks',
      tags,
      summary: 'Count webhooks',
      response: { 200: json(CountSchema, 'The number of webhooks.'), ...errors() }
    }
  }, async () => ({ data: { count: await webhooks.count() } }))

  app.get('/webhook/list', {
    config: { access: 'listWebhooks' },
    schema: {
      operationId: 'listWebhooks',
      tags,
      summary: 'List webhooks',
      querystring: WebhookListQuerySchema,
      response: { 200: pagedList(WebhookSchema, 'The webhooks.'), ...errors('ErrLimit') }
    }
  }, async (request, reply) => {
    const page = await webhooks.page(request.query)
    if (page.after !== undefined) linkNext(request, reply, page.after)
    return await sendList(request, reply, page, { format: request.query.format, stallTimeout })
  })

  app.get('/webhook/:webhookId', {
    config: { access: 'getWebhook' },
    schema: {
      operationId: 'getWebhook',
      tags,
      summary: 'Read a webhook, and how its deliveries stand',
      params: WebhookParamsSchema,
      response: { 200: json(Data(WebhookSchema), 'The webhook.'), ...errors('ErrNotFound') }
    }
  }, async (request) => ({ data: await webhooks.require(request.params.webhookId) }))

  app.patch('/webhook/:webhookId', {
    config: { access: 'patchWebhook' },
    schema: {
      operationId: 'patchWebhook',
      tags,
      summary: 'Change, disable or enable a webhook',
      params: WebhookParamsSchema,
      body: PatchWebhookSchema,
      response: { 204: NoContentSchema, ...writeErrors('ErrNotFound') }
    }
  }, async (request, reply) => {
    await webhooks.patch(request.params.webhookId, request.body)
    return reply.code(204).send(undefined)
  })

  app.delete('/webhook/:webhookId', {
    config: { access: 'deleteWebhook' },
    schema: {
      operationId: 'deleteWebhook',
      tags,
      summary: 'Delete a webhook',
      params: WebhookParamsSchema,
      response: { 204: NoContentSchema, ...writeErrors('ErrNotFound') }
    }
  }, async (request, reply) => {
    await webhooks.remove(request.params.webhookId)
    return reply.code(204).send(undefined)
  })

  app.get('/webhook/:webhookId/attempts', {
    config: { access: 'listWebhookAttempts' },
    schema: {
      operationId: 'listWebhookAttempts',
      tags,
      summary: 'Read the last 100 attempts of a webhook, the newest first',
      params: WebhookParamsSchema,
      response: { 200: json(WebhookAttemptsSchema, 'The attempts.'), ...errors('ErrNotFound') }
    }
  }, async (request) => ({ data: await webhooks.listAttempts(request.params.webhookId) }))

  app.post('/webhook/:webhookId/replay', {
    config: { access: 'replayWebhook' },
    schema: {
      operationId: 'replayWebhook',
      tags,
      summary: 'Deliver events again',
      params: WebhookParamsSchema,
      body: ReplayWebhookSchema,
      response: { 200: json(WebhookReplayedSchema, 'Where the deliveries are now.'), ...writeErrors('ErrNotFound') }
    }
  }, async (request) => ({ data: await webhooks.replay(request.params.webhookId, request.body) }))

  app.post('/webhook/:webhookId/test', {
    config: { access: 'testWebhook' },
    schema: {
      operationId: 'testWebhook',
      tags,
      summary: 'Send a message of the type webhook.test now',
      params: WebhookParamsSchema,
      response: { 200: json(WebhookTestedSchema, 'What came of it: a status, or the code of a failure.'), ...writeErrors('ErrNotFound') }
    }
  }, async (request) => ({ data: await webhooks.test(request.params.webhookId) }))

  app.post('/webhook/:webhookId/secret', {
    config: { access: 'rotateWebhookSecret' },
    schema: {
      operationId: 'rotateWebhookSecret',
      tags,
      summary: 'Replace the secret; the former one signs too for 24 hours',
      params: WebhookParamsSchema,
      response: { 200: json(WebhookSecretSchema, 'The new secret.'), ...writeErrors('ErrNotFound') }
    }
  }, async (request, reply) => {
    reply.header('cache-control', 'no-store')
    return { data: await webhooks.rotateSecret(request.params.webhookId) }
  })
}
