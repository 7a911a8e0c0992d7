import { Type, type Static } from '@sinclair/typebox'
import fastify, { type FastifyInstance } from 'fastify'
import { LIMITS, RolesSchema } from '../schemas/common.ts'
import { checkTimestamp } from '../lib/checks.ts'
import { toTimestamp } from '../lib/clock.ts'
import { IdentityError } from '../lib/errors.ts'
import { ACRS } from '../lib/proofs.ts'
import { handleError } from '../plugins/errors.ts'
import { useOwnJson } from '../plugins/json.ts'
import { useOwnValidation } from '../plugins/validation.ts'
import { startIdentity, type StartOptions, type TestKit } from './kit.ts'

const MintSchema = Type.Object({
  user: Type.Optional(Type.String()),
  client: Type.Optional(Type.String()),
  roles: Type.Optional(Type.Union([Type.Array(Type.String()), RolesSchema])),
  scopes: Type.Optional(Type.Array(Type.String())),
  resource: Type.Optional(Type.String()),
  ttl: Type.Optional(Type.Integer({ minimum: 1 })),
  refresh: Type.Optional(Type.Boolean()),
  acr: Type.Optional(Type.Union(ACRS.map((acr) => Type.Literal(acr))))
}, { additionalProperties: false })

const MailsQuerySchema = Type.Object({ to: Type.Optional(Type.String()) }, { additionalProperties: false })

/** The longest step of the clock in milliseconds: a hundred years, well within the range of Date. */
const MAX_STEP = 3_155_760_000_000

const ClockSchema = Type.Union([
  Type.Object({ advance: Type.Integer({ minimum: -MAX_STEP, maximum: MAX_STEP, description: 'Milliseconds.' }) }, { additionalProperties: false }),
  Type.Object({ set: Type.String({ description: 'RFC 3339.' }) }, { additionalProperties: false })
])

/** The routes with which a suite in another language controls the kit. The service itself does not have them. */
function controlRoutes (app: FastifyInstance, kit: TestKit): void {
  const readClock = () => ({ data: { now: toTimestamp(kit.clock.now()) } })
  app.setErrorHandler(handleError)
  useOwnValidation(app)
  useOwnJson(app, LIMITS.body)
  app.get('/testing', readClock)
  app.post<{ Body: Static<typeof MintSchema> }>('/testing/tokens', { schema: { body: MintSchema } }, async ({ body }) =>
    ({ data: await kit.mint(body) }))
  app.post<{ Body: Static<typeof ClockSchema> }>('/testing/clock', { schema: { body: ClockSchema } }, async ({ body }) => {
    if ('advance' in body) kit.clock.advance(body.advance)
    else kit.clock.set(checkTimestamp('set', body.set))
    return readClock()
  })
  app.get<{ Querystring: { to?: string } }>('/testing/mails', { schema: { querystring: MailsQuerySchema } }, async ({ query }) => {
    try {
      return { data: await kit.mails.next(query) }
    } catch {
      throw new IdentityError('ErrNotFound', 'to: no such mail was sent')
    }
  })
  app.post('/testing/reset', async (_request, reply) => {
    await kit.reset()
    return reply.code(204).send()
  })
}

export interface ServeOptions extends Omit<StartOptions, 'app'> {
  /** 0, the default, takes a free port. */
  port?: number
}

export interface TestServer {
  /** `http://127.0.0.1:PORT` */
  url: string
  kit: TestKit
  close (): Promise<void>
}

/**
 * Starts a kit on 127.0.0.1. It has the service's own routes, and routes that control it:
 * - `POST /testing/tokens` `{ user?, client?, roles?, scopes?, resource?, ttl?, refresh? }` mints a token, see `MintRequest`
 * - `POST /testing/clock` `{ advance: MILLISECONDS }` or `{ set: RFC 3339 }` moves the clock
 * - `GET /testing/mails?to=ADDRESS` removes and returns the next mail; 404 when there is none
 * - `POST /testing/reset` empties the store and resets the clock
 * - `GET /testing` returns the clock's time
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
