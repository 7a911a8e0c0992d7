import { FastifyOtelInstrumentation } from '@fastify/otel'
import { InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import t from 'tap'
import { createApp } from '../../testing/kit.ts'
import { signIn as mintPerson } from '../helpers/people.ts'
import { getCode, startHarness } from '../oidc/harness.ts'

t.test('@fastify/otel traces our routes, with their patterns and no secret', async (t) => {
  const exporter = new InMemorySpanExporter()
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  t.teardown(() => provider.shutdown())
  const otel = new FastifyOtelInstrumentation({ registerOnInitialization: false })
  otel.setTracerProvider(provider)
  const app = createApp()
  await app.register(otel.plugin())
  const harness = await startHarness(t, { app })
  const client = await harness.register()
  const ann = await mintPerson(harness.kit, { user: harness.user.user_id })
  t.match(await ann.get('/auth/tokeninfo'), { status: 200 })
  t.match(await ann.get('/client/nothing'), { status: 404 })
  const code = await getCode(harness, client)
  t.equal((await harness.post('token', code, client)).status, 200)

  const spans = exporter.getFinishedSpans().map(({ name, attributes }) => ({ name, route: attributes['http.route'], status: attributes['http.response.status_code'] }))
  const find = (route: string) => spans.filter((span) => span.route === route && span.status !== undefined)
  t.match(find('/api/v1/auth/tokeninfo'), [{ status: 200 }])
  t.match(find('/api/v1/client/:clientId'), [{ status: 404 }])
  t.ok(find('/api/v1/auth/interaction/:uid').length > 0)
  t.ok(spans.some(({ route }) => route === '/api/v1/auth/token'), 'a route that oidc-provider answers')
  const all = JSON.stringify(exporter.getFinishedSpans().map(({ name, attributes, events }) => ({ name, attributes, events })))
  for (const secret of [code.code, code.code_verifier, client.client_secret, harness.user.password, ann.access_token]) t.notOk(all.includes(secret))
})
