import Fastify from 'fastify'

// The smallest Fastify app, to time its start.

const app = Fastify()
app.get('/api/v1/auth/tokeninfo', () => ({ data: { status: 'up' } }))
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
