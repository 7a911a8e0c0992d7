import Fastify from 'fastify'
import identity from '../../index.ts'

// The service embedded in the least Fastify app, for the time it takes to start.

const app = Fastify()
await app.register(identity, { database: process.env.DATABASE_URL!, secretKey: process.env.IDENTITY_SECRET_KEY! })
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
