import type { FastifyInstance } from 'fastify'
import sensible from '@fastify/sensible'
import { LIMITS } from '../schemas/common.ts'
import type { Clock } from '../lib/clock.ts'
import type { AccessRule, Options } from '../schemas/options.ts'
import { enforceAccess } from '../plugins/access.ts'
import { answerPreflights } from '../plugins/cors.ts'
import { handleNotFound } from '../plugins/errors.ts'
import type { ServiceStatus } from '../plugins/status.ts'
import { useOwnJson } from '../plugins/json.ts'
import { answerErrors, recordOrigins } from '../plugins/origin.ts'
import { useOwnValidation } from '../plugins/validation.ts'
import { answerRoutes } from './answers.ts'
import { eventRoutes } from './event.ts'
import { factorRoutes } from './factor.ts'
import { identityRoutes } from './identity.ts'
import { importRoutes } from './import.ts'
import { guardedPeopleRoutes } from './people-guarded.ts'
import { authRoutes } from './auth.ts'
import { clientRoutes } from './client.ts'
import { documentRoutes } from './document.ts'
import { peopleRoutes } from './people.ts'
import { resourceRoutes } from './resource.ts'
import { sessionRoutes } from './sessions.ts'
import type { RouteSettings } from './settings.ts'
import { statusRoutes } from './status.ts'
import { userRoutes } from './user.ts'
import { userHelpRoutes } from './user-help.ts'
import { jobRoutes } from './job.ts'
import { webhookRoutes } from './webhook.ts'

/** How requests come: by HTTP, or from the pages of the console. */
type Via = 'api' | 'console'

/** The API, in a scope with its own error handler, validation and body parser. Those of the host are not changed. */
export async function apiRoutes (
  app: FastifyInstance,
  options: RouteSettings & Pick<Options, 'forwardAuth'> & { access: Record<string, AccessRule>, now: Clock, status: ServiceStatus, via: Via }
): Promise<void> {
  const { via } = options
  recordOrigins(app, ({ method, routeOptions: { config } }) => (method === 'GET' || method === 'HEAD') && config.isRecorded !== true ? undefined : via)
  answerErrors(app, via)
  app.setNotFoundHandler(handleNotFound)
  useOwnValidation(app)
  useOwnJson(app, LIMITS.body)
  await app.register(sensible)
  answerPreflights(app)
  // Before the guards: these routes need no token, except one for some of its links.
  await app.register(peopleRoutes, options)
  const { forwardAuth, now } = options
  if (forwardAuth !== false) {
    const { forwardRoutes } = await import('./forward-auth.ts')
    const header = forwardAuth === true ? undefined : forwardAuth.header.toLowerCase()
    await app.register(forwardRoutes, { header, now, prefix: '/auth/forward' })
  }
  enforceAccess(app, options.access)
  await app.register(authRoutes)
  await app.register(sessionRoutes, options)
  await app.register(clientRoutes, options)
  await app.register(documentRoutes, options)
  await app.register(resourceRoutes, options)
  await app.register(webhookRoutes, options)
  await app.register(userRoutes, options)
  const { personalTokens } = app.identity
  if (personalTokens !== undefined) {
    const { personalTokenRoutes } = await import('./personal-token.ts')
    await app.register(personalTokenRoutes, { ...options, personalTokens })
  }
  await app.register(answerRoutes, options)
  await app.register(userHelpRoutes, options)
  await app.register(jobRoutes, options)
  await app.register(statusRoutes, options)
  await app.register(importRoutes, options)
  await app.register(factorRoutes, options)
  await app.register(identityRoutes, options)
  await app.register(eventRoutes, options)
  await app.register(guardedPeopleRoutes, options)
}
