import { Readable } from 'node:stream'
import Fastify from 'fastify'
import { listedClientAt, range, tokenInfoAt } from '../fixture.ts'
import { page, shownUserAt, tokenInfoSchema, userSchema, usersSchema } from './answers.ts'
import { readOptions, serve } from './serve.ts'

// The upper limit: the cost of Fastify itself with the same answers and headers. Nothing is looked up, hashed or checked.

const { logger = false, users = 1 } = readOptions<{ logger?: boolean, users?: number }>()

const app = Fastify({ logger })

const info = { data: tokenInfoAt(0) }
app.get('/api/v1/auth/tokeninfo', { schema: tokenInfoSchema }, (_request, reply) => {
  reply.header('cache-control', 'no-store').send(info)
})

// A form, as introspection has one, and its answer as text.
app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) => done(null, new URLSearchParams(body as string)))
const active = JSON.stringify({ active: true, sub: 'x'.repeat(34), client_id: 'x'.repeat(34), iss: 'http://127.0.0.1', scope: 'x'.repeat(20), exp: 1, iat: 1, token_type: 'Bearer' })
app.post('/api/v1/auth/introspect', (_request, reply) => {
  reply.header('cache-control', 'no-store').type('application/json; charset=utf-8').send(active)
})

const user = { data: shownUserAt(0) }
app.get('/api/v1/user', { schema: userSchema }, (_request, reply) => {
  reply.header('cache-control', 'no-store').send(user)
})
app.get('/api/v1/user/:userId', { schema: userSchema }, (_request, reply) => {
  reply.header('cache-control', 'no-store').send(user)
})
app.patch('/api/v1/user/:userId', (_request, reply) => {
  reply.header('cache-control', 'no-store').code(204).send()
})
app.get('/api/v1/user/list', { schema: usersSchema }, (_request, reply) => {
  reply.header('cache-control', 'no-store').send({ data: page })
})

/** The bytes of 100 clients, repeated: the bytes of the service's NDJSON list without the list. */
const batch = Buffer.from(range(100, (index) => JSON.stringify(listedClientAt(index, users)) + '\n').join(''))
app.get<{ Querystring: { rows: string } }>('/stream', (request, reply) => {
  let left = Number(request.query.rows) / 100
  reply.type('application/x-ndjson; charset=utf-8').send(new Readable({
    read () { this.push(left-- > 0 ? batch : null) }
  }))
})

await serve(app)
