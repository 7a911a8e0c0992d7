import Fastify from 'fastify'
import identity from '../../index.ts'

// The service embedded in the smallest Fastify app, to time its start.

const app = Fastify()
await app.register(identity, { database: process.env.DATABASE_URL!, secretKey: process.env.IDENTITY_SECRET_KEY! })
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
