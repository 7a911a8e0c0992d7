import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { ErrorSchema } from '../schemas/error.ts'

const tags = ['health']
const UpSchema = Type.Object({ status: Type.Literal('up') })

/** For orchestrators: `/health/live` uses nothing, `/health/ready` checks the store. */
export async function health (app: FastifyInstance): Promise<void> {
  app.get('/health/live', {
    logLevel: 'warn',
    schema: {
      operationId: 'getLiveness',
      tags,
      summary: 'Check that the process answers',
      response: { 200: { ...UpSchema, description: 'It answers.' } }
    }
  }, () => ({ status: 'up' }))

  app.get('/health/ready', {
    logLevel: 'warn',
    schema: {
      operationId: 'getReadiness',
      tags,
      summary: 'Check that the store answers',
      response: {
        200: { ...UpSchema, description: 'It answers.' },
        503: { ...ErrorSchema, description: 'ErrDb: the store does not answer.' }
      }
    }
  }, async () => {
    await app.identity.store.ping()
    return { status: 'up' }
  })
}
