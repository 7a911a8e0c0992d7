import { Ajv } from 'ajv'
import ajvFormats from 'ajv-formats'
import fastify, { type RouteOptions } from 'fastify'
import fastJson from 'fast-json-stringify'
import t from 'tap'
import identity from '../index.ts'
import { bridge } from '../routes/bridge.ts'
import { BridgeOptionsSchema } from '../schemas/bridge.ts'
import { EnvironmentSchema } from '../schemas/config.ts'
import { OidcOptionsSchema } from '../schemas/oidc.ts'
import { OptionsSchema } from '../schemas/options.ts'
import { RemoteOptionsSchema } from '../schemas/remote.ts'

// The service compiles schemas at their first use, without a check against JSON Schema, which would slow down the start.

/** Compiles with the check that the service omits. */
function compile (schema: object) {
  const ajv = new Ajv({ strict: true, strictTypes: false, keywords: ['expects'] })
  ajvFormats.default(ajv)
  ajv.compile(schema)
}

t.test('the schemas of options and the environment are valid JSON Schema', async (t) => {
  const schemas = { BridgeOptionsSchema, EnvironmentSchema, OidcOptionsSchema, OptionsSchema, RemoteOptionsSchema }
  for (const [name, schema] of Object.entries(schemas)) t.doesNotThrow(() => compile(schema), name)
})

t.test('so are the schemas of requests and responses', async (t) => {
  const app = fastify()
  t.teardown(async () => await app.close())
  const routes: RouteOptions[] = []
  app.addHook('onRoute', (route) => { routes.push(route) })
  await app.register(identity, { database: 'sqlite::memory:', openapi: false })
  await app.register(bridge, { prefix: '/bridge', upstream: 'http://127.0.0.1:9' })
  await app.ready()
  const described = routes.filter(({ schema }) => schema !== undefined && schema.hide !== true)
  t.ok(described.length >= 28)
  for (const { method, url, schema = {} } of described) {
    const { body, querystring, params, response = {} } = schema as Record<string, object | undefined>
    // A body of another type than JSON has its schema by the type.
    const { content } = (body ?? {}) as { content?: Record<string, { schema: object }> }
    const bodies = content === undefined ? [body] : Object.values(content).map(({ schema }) => schema)
    for (const part of [...bodies, querystring, params]) if (part !== undefined) t.doesNotThrow(() => compile(part), `${String(method)} ${url}`)
    for (const [status, part] of Object.entries(response)) t.doesNotThrow(() => fastJson(part as object), `${String(method)} ${url} ${status}`)
  }
})
