import { Type, type Static } from '@sinclair/typebox'
import fastify, { type FastifyInstance } from 'fastify'
import { LIMITS, RolesSchema } from '../schemas/common.ts'
import { checkTimestamp } from '../lib/checks.ts'
import { toTimestamp } from '../lib/clock.ts'
import { handleError } from '../plugins/errors.ts'
import { useOwnJson } from '../plugins/json.ts'
import { useOwnValidation } from '../plugins/validation.ts'
import { startIdentity, type StartOptions, type TestKit } from './kit.ts'

const MintSchema = Type.Object({
  user: Type.Optional(Type.String()),
  client: Type.Optional(Type.String()),
  roles: Type.Optional(Type.Union([Type.Array(Type.String()), RolesSchema])),
  scopes: Type.Optional(Type.Array(Type.String())),
  ttl: Type.Optional(Type.Integer({ minimum: 1 })),
  refresh: Type.Optional(Type.Boolean())
}, { additionalProperties: false })

/** Milliseconds in a hundred years: no test needs a longer step, and no step leaves the range of dates at once. */
const FAR = 3_155_760_000_000

const ClockSchema = Type.Union([
  Type.Object({ advance: Type.Integer({ minimum: -FAR, maximum: FAR, description: 'Milliseconds.' }) }, { additionalProperties: false }),
  Type.Object({ set: Type.String({ description: 'RFC 3339.' }) }, { additionalProperties: false })
])

/** What a suite in another language steers the kit with. The service itself has none of these. */
function controlRoutes (app: FastifyInstance, kit: TestKit): void {
  const tell = () => ({ data: { now: toTimestamp(kit.clock.now()) } })
  app.setErrorHandler(handleError)
  useOwnValidation(app)
  useOwnJson(app, LIMITS.body)
  app.get('/testing', tell)
  app.post<{ Body: Static<typeof MintSchema> }>('/testing/tokens', { schema: { body: MintSchema } }, async ({ body }) =>
    ({ data: await kit.mint(body) }))
  app.post<{ Body: Static<typeof ClockSchema> }>('/testing/clock', { schema: { body: ClockSchema } }, async ({ body }) => {
    if ('advance' in body) kit.clock.advance(body.advance)
    else kit.clock.set(checkTimestamp('set', body.set))
    return tell()
  })
  app.post('/testing/reset', async (_request, reply) => {
    await kit.reset()
    return reply.code(204).send()
  })
}

export interface ServeOptions extends Omit<StartOptions, 'app'> {
  /** 0, the default, is a free one. */
  port?: number
}

export interface TestServer {
  /** `http://127.0.0.1:PORT` */
  url: string
  kit: TestKit
  close (): Promise<void>
}

/**
 * Starts a kit on a socket of 127.0.0.1, with routes beside the service's own that steer it:
 * - `POST /testing/tokens` `{ user?, client?, roles?, scopes?, ttl?, refresh? }` mints a token, see `MintRequest`
 * - `POST /testing/clock` `{ advance: MILLISECONDS }` or `{ set: RFC 3339 }` moves the clock
 * - `POST /testing/reset` empties the store and puts the clock back
 * - `GET /testing` tells the time
 */
export async function serveTesting ({ port = 0, ...options }: ServeOptions = {}): Promise<TestServer> {
  const app = fastify()
  const kit = await startIdentity({ ...options, app })
  try {
    await app.register(async (scope) => controlRoutes(scope, kit))
    const { url } = await kit.listen({ port })
    return { url, kit, close: kit.close }
  } catch (error) {
    await kit.close()
    throw error
  }
}
