import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { ErrorSchema } from '../schemas/error.ts'
import { readVersion } from '../lib/version.ts'
import { createReadiness } from './readiness.ts'

const tags = ['health']
const UpSchema = Type.Object({ status: Type.Literal('up'), version: Type.String({ description: 'The version of the service.' }) })

/**
 * Opens the check of whether this process can serve.
 * @param closing aborted when the service is about to close; the close of the app aborts it too
 */
export function openReadiness (app: FastifyInstance, closing: AbortSignal | undefined): () => Promise<void> {
  const own = new AbortController()
  app.addHook('preClose', async () => own.abort())
  return createReadiness({ store: app.identity.store, closing: closing === undefined ? own.signal : AbortSignal.any([own.signal, closing]) })
}

/** For orchestrators: `/health/live` depends on nothing, `/health/ready` checks the store. */
export async function health (app: FastifyInstance, { checkReadiness }: { checkReadiness: () => Promise<void> }): Promise<void> {
  const up = { status: 'up', version: readVersion() } as const

  app.get('/health/live', {
    logLevel: 'warn',
    schema: {
      operationId: 'getLiveness',
      tags,
      summary: 'Check that the process answers',
      response: { 200: { ...UpSchema, description: 'The process answers.' } }
    }
  }, () => up)

  app.get('/health/ready', {
    logLevel: 'warn',
    schema: {
      operationId: 'getReadiness',
      tags,
      summary: 'Check that the service can serve: the store reads and writes, and no shutdown has begun',
      response: {
        200: { ...UpSchema, description: 'The service is ready.' },
        503: { ...ErrorSchema, description: 'ErrDb: the store cannot read or write, or the service is closing.' }
      }
    }
  }, async () => {
    await checkReadiness()
    return up
  })
}
