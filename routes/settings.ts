import type { preHandlerHookHandler } from 'fastify'

/** What the routes need besides `app.identity`. */
export interface RouteSettings {
  /** Milliseconds, see lib/lists/listing.ts. */
  stallTimeout: number
  /** Limits how often a user may have a password hashed. */
  passwordLimit: preHandlerHookHandler
}
