import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { ErrorSchema } from '../schemas/error.ts'

const tags = ['health']
const UpSchema = Type.Object({ status: Type.Literal('up') })

/** For orchestrators: `/health/live` touches nothing, `/health/ready` asks the store. */
export async function health (app: FastifyInstance): Promise<void> {
  app.get('/health/live', {
    logLevel: 'warn',
    schema: {
      operationId: 'getLiveness',
      tags,
      summary: 'The process answers',
      response: { 200: { ...UpSchema, description: 'It does.' } }
    }
  }, () => ({ status: 'up' }))

  app.get('/health/ready', {
    logLevel: 'warn',
    schema: {
      operationId: 'getReadiness',
      tags,
      summary: 'The store answers',
      response: {
        200: { ...UpSchema, description: 'It does.' },
        503: { ...ErrorSchema, description: 'ErrDb: it does not.' }
      }
    }
  }, async () => {
    await app.identity.store.ping()
    return { status: 'up' }
  })
}
