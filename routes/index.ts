import type { FastifyInstance, preHandlerHookHandler } from 'fastify'
import sensible from '@fastify/sensible'
import { LIMITS } from '../schemas/common.ts'
import type { AccessRule } from '../schemas/options.ts'
import { enforceAccess } from '../plugins/access.ts'
import { answerPreflights } from '../plugins/cors.ts'
import { handleError, handleNotFound } from '../plugins/errors.ts'
import { useOwnJson } from '../plugins/json.ts'
import { useOwnValidation } from '../plugins/validation.ts'
import { authRoutes } from './auth.ts'
import { clientRoutes } from './client.ts'
import { sessionRoutes } from './sessions.ts'
import { userRoutes } from './user.ts'

/** What a single-page app asks for the user who signed in to it. */
const FOR_PAGES = { '/auth/tokeninfo': 'GET', '/auth/logout': 'POST', '/auth/sessions': 'GET, DELETE' }

/** What the routes need besides `app.identity`. */
export interface RouteSettings {
  /** Milliseconds, see lib/lists/listing.ts. */
  stallTimeout: number
  /** Bounds how often a user may have a password hashed. */
  passwordLimit: preHandlerHookHandler
}

/**
 * The API under its prefix, in a scope of its own: its errors, its validation and its body parser are ours whatever
 * the host's are, and the host's stay as they were.
 */
export async function apiRoutes (app: FastifyInstance, options: RouteSettings & { access: Record<string, AccessRule> }): Promise<void> {
  app.setErrorHandler(handleError)
  app.setNotFoundHandler(handleNotFound)
  useOwnValidation(app)
  useOwnJson(app, LIMITS.body)
  await app.register(sensible)
  answerPreflights(app, FOR_PAGES)
  enforceAccess(app, options.access)
  await app.register(authRoutes)
  await app.register(sessionRoutes, options)
  await app.register(clientRoutes, options)
  await app.register(userRoutes, options)
}
