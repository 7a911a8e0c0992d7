import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Opening, REMEDIES } from '../lib/answers/remedies.ts'
import type { Refusal } from '../lib/answers/methods.ts'
import type { AccessRule } from '../schemas/options.ts'
import type { Remedy } from '../schemas/reason.ts'
import { listRolesOf, mayCall } from './access.ts'
import { toActor } from './auth.ts'

/** A refusal with what opens it. */
type Opened = Refusal & { remedy?: Remedy }

/** Adds to refusals what opens them, and whether the caller of a request may do it, by the access table and the checks of the person. */
export function createRemedies (app: FastifyInstance, overrides: Record<string, AccessRule>) {
  /** Every remedy changes something, so the scope of writing decides. */
  const mayApply = (request: FastifyRequest, name: string): boolean => mayCall(app, request, name, { overrides, method: 'POST' })

  async function show (request: FastifyRequest, opening: Opening, user_id: string | undefined): Promise<Remedy> {
    if ('self' in opening) return { operation: opening.self, who: ['self'], allowed: false }
    if ('operator' in opening) return { operation: 'configuration', who: ['operator'], allowed: false }
    const { operation } = opening
    const isOpen = async () => user_id === undefined || await app.identity.answers.mayApply(operation, user_id, toActor(request, app.identity))
    return { operation, who: listRolesOf(app, operation, overrides), allowed: mayApply(request, operation) && await isOpen() }
  }

  return async function addRemedies (request: FastifyRequest, refusals: readonly Refusal[], user_id?: string): Promise<Opened[]> {
    return await Promise.all(refusals.map(async ({ opening: own, ...refusal }) => {
      const opening: Opening | undefined = own ?? REMEDIES[refusal.reason]
      return opening === undefined ? refusal : { ...refusal, remedy: await show(request, opening, user_id) }
    }))
  }
}
