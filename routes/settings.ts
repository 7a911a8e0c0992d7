import type { preHandlerAsyncHookHandler } from 'fastify'

/** The settings of the routes, in addition to `app.identity`. */
export interface RouteSettings {
  /** Milliseconds: a client that reads nothing of a streamed list for this long is disconnected. */
  stallTimeout: number
  /** Limits how often a user may change a password. */
  passwordLimit: preHandlerAsyncHookHandler
  /** Limits how often a user may change something through the client and user API. */
  writeLimit: preHandlerAsyncHookHandler
  /** Limits how often links are used, without a sign-in, from one address. */
  linkLimit: preHandlerAsyncHookHandler
}
