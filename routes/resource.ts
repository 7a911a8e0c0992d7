import type { FastifyInstance } from 'fastify'
import { Data } from '../schemas/common.ts'
import {
  CreateResourceSchema, PatchResourceSchema, ResourceCreatedSchema, ResourceListQuerySchema, ResourcePatchedSchema, ResourceSchema
} from '../schemas/resource.ts'
import { count, createRows, data, pages } from './rows.ts'
import type { RouteSettings } from './settings.ts'

/** Declared resources, see docs/resources.md. */
export async function resourceRoutes (app: FastifyInstance, { stallTimeout }: RouteSettings): Promise<void> {
  const { resources } = app.identity
  const add = createRows(app, 'resource', { stallTimeout })

  add('createResource', 'POST /resource', 'Declare a resource and its scopes', {
    body: CreateResourceSchema,
    answer: data(ResourceCreatedSchema, 'The id of the new resource.'),
    errors: ['RESOURCE_EXIST'],
    run: ({ body }) => resources.create(body)
  })

  add('countResources', 'GET /resource/count', 'Count resources', {
    answer: count('The number of resources.'),
    run: () => resources.count()
  })

  add('listResources', 'GET /resource/list', 'List resources', {
    query: ResourceListQuerySchema,
    answer: pages(ResourceSchema, 'The resources.'),
    run: ({ query }) => resources.page(query)
  })

  add('getResource', 'GET /resource/:resourceId', 'Read a resource', {
    answer: data(Data(ResourceSchema), 'The resource.'),
    errors: ['ErrNotFound'],
    run: ({ params }) => resources.require(params.resourceId)
  })

  add('patchResource', 'PATCH /resource/:resourceId', 'Change a resource or its scopes', {
    body: PatchResourceSchema,
    answer: data(ResourcePatchedSchema, 'Done.'),
    errors: ['ErrNotFound', 'RESOURCE_EXIST'],
    run: ({ params, body }) => resources.patch(params.resourceId, body)
  })

  add('deleteResource', 'DELETE /resource/:resourceId', 'Delete a resource; its tokens end and its scopes stay reserved', {
    errors: ['ErrNotFound'],
    run: async ({ params }) => { await resources.remove(params.resourceId) }
  })
}
