import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { Data } from '../../schemas/common.ts'
import { count, createRows, data } from '../../routes/rows.ts'
import { build } from '../helpers/build.ts'

const NameSchema = Type.Object({ name: Type.String() })

/** Never called: the compiler checks that only the first two rows fit. */
export function compileRows (app: FastifyInstance): void {
  const add = createRows(app, 'user')
  add('countUsers', 'GET /user/count', 'Count', { answer: count('A number.'), run: async () => 1 })
  add('patchUser', 'PATCH /user/:userId', 'Change', { body: NameSchema, run: ({ params, body }) => { String(params.userId + body.name) } })
  // @ts-expect-error no operation has this name
  add('countPeople', 'GET /user/count', 'Count', { answer: count('A number.'), run: async () => 1 })
  // @ts-expect-error no such method
  add('countUsers', 'READ /user/count', 'Count', { answer: count('A number.'), run: async () => 1 })
  // @ts-expect-error the path has no such parameter
  add('deleteUser', 'DELETE /user/:userId', 'Delete', { run: ({ params }) => { String(params.clientId) } })
  // @ts-expect-error the body has no such field
  add('createUser', 'POST /user', 'Create', { body: NameSchema, run: ({ body }) => { String(body.account) } })
  // @ts-expect-error the result is not what the answer needs
  add('countUsers', 'GET /user/count', 'Count', { answer: count('A number.'), run: async () => 'one' })
  // @ts-expect-error the result lacks a field of the schema
  add('getProfile', 'GET /user', 'Read', { answer: data(Data(NameSchema), 'A name.'), run: async () => ({}) })
  // @ts-expect-error a row without an answer has no result
  add('deleteUser', 'DELETE /user/:userId', 'Delete', { run: async () => ({ name: 'ann' }) })
  // @ts-expect-error no such kind of error
  add('deleteUser', 'DELETE /user/:userId', 'Delete', { errors: ['ErrNobody'], run: () => {} })
}

t.test('the errors of an operation follow from its row, its group and the access table', async (t) => {
  const kit = await build(t)
  const { paths } = (await kit.inject('/openapi.json')).json<{ paths: Record<string, Record<string, { operationId: string, responses: object }>> }>()
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods))
  const statusesOf = (name: string) => Object.keys(operations.find(({ operationId }) => operationId === name)?.responses ?? {}).map(Number)

  const guarded = [400, 401, 403, 414, 431, 500, 503]
  const body = [408, 413, 415]
  const sorted = (...statuses: number[]) => statuses.sort((a, b) => a - b)
  t.strictSame(statusesOf('getTokenInfo'), sorted(200, ...guarded))
  t.strictSame(statusesOf('getClient'), sorted(200, 404, ...guarded), 'its own')
  t.strictSame(statusesOf('listResources'), sorted(200, 429, ...guarded), 'those of a list')
  t.strictSame(statusesOf('patchResource'), sorted(200, 404, 409, ...body, ...guarded), 'those of a body')
  t.strictSame(statusesOf('deleteClient'), sorted(204, 404, 429, ...body, ...guarded), 'that of the limit of writes')
  t.strictSame(statusesOf('undoAddressChange'), sorted(204, 400, 410, 414, 429, 431, 500, 503, ...body), 'without those of a token')
  t.strictSame(statusesOf('verifyAddress'), sorted(204, 410, 429, ...body, ...guarded), 'a token is needed sometimes')
})
