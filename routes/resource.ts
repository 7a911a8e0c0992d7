import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { CountSchema, Data } from '../schemas/common.ts'
import {
  CreateResourceSchema, PatchResourceSchema, ResourceCreatedSchema, ResourceListQuerySchema, ResourceParamsSchema, ResourcePatchedSchema,
  ResourceSchema
} from '../schemas/resource.ts'
import { linkNext, sendList } from './list-reply.ts'
import { NoContentSchema, errors, json, pagedList, writeErrors } from './responses.ts'
import type { RouteSettings } from './settings.ts'

const tags = ['resource']

/** Declared resources, see docs/resources.md. */
export const resourceRoutes: FastifyPluginAsyncTypebox<RouteSettings> = async (app, { stallTimeout }) => {
  const { resources } = app.identity

  app.post('/resource', {
    config: { access: 'createResource' },
    schema: {
      operationId: 'createResource',
      tags,
      summary: 'Declare a resource and its scopes',
      body: CreateResourceSchema,
      response: { 200: json(ResourceCreatedSchema, 'The id of the new resource.'), ...writeErrors('RESOURCE_EXIST') }
    }
  }, async (request) => ({ data: await resources.create(request.body) }))

  app.get('/resource/count', {
    config: { access: 'countResources' },
    schema: {
      operationId: 'countResources',
      tags,
      summary: 'Count resources',
      response: { 200: json(CountSchema, 'The number of resources.'), ...errors() }
    }
  }, async () => ({ data: { count: await resources.count() } }))

  app.get('/resource/list', {
    config: { access: 'listResources' },
    schema: {
      operationId: 'listResources',
      tags,
      summary: 'List resources',
      querystring: ResourceListQuerySchema,
      response: { 200: pagedList(ResourceSchema, 'The resources.'), ...errors('ErrLimit') }
    }
  }, async (request, reply) => {
    const page = await resources.page(request.query)
    if (page.after !== undefined) linkNext(request, reply, page.after)
    return await sendList(request, reply, page, { format: request.query.format, stallTimeout })
  })

  app.get('/resource/:resourceId', {
    config: { access: 'getResource' },
    schema: {
      operationId: 'getResource',
      tags,
      summary: 'Read a resource',
      params: ResourceParamsSchema,
      response: { 200: json(Data(ResourceSchema), 'The resource.'), ...errors('ErrNotFound') }
    }
  }, async (request) => ({ data: await resources.require(request.params.resourceId) }))

  app.patch('/resource/:resourceId', {
    config: { access: 'patchResource' },
    schema: {
      operationId: 'patchResource',
      tags,
      summary: 'Change a resource or its scopes',
      params: ResourceParamsSchema,
      body: PatchResourceSchema,
      response: { 200: json(ResourcePatchedSchema, 'Done.'), ...writeErrors('ErrNotFound', 'RESOURCE_EXIST') }
    }
  }, async (request) => ({ data: await resources.patch(request.params.resourceId, request.body) }))

  app.delete('/resource/:resourceId', {
    config: { access: 'deleteResource' },
    schema: {
      operationId: 'deleteResource',
      tags,
      summary: 'Delete a resource; its tokens end and its scopes stay reserved',
      params: ResourceParamsSchema,
      response: { 204: NoContentSchema, ...writeErrors('ErrNotFound') }
    }
  }, async (request, reply) => {
    await resources.remove(request.params.resourceId)
    return reply.code(204).send(undefined)
  })
}
