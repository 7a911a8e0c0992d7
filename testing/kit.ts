import { hash } from 'node:crypto'
import fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { LIMITS } from '../schemas/common.ts'
import { COLLECTIONS } from '../lib/store/collections.ts'
import type { Store } from '../lib/store/port.ts'
import { handleError } from '../plugins/errors.ts'
import identity, { type IdentityOptions } from '../index.ts'
import { createTestClock, type TestClock } from './clock.ts'
import { createMint, type Mint } from './mint.ts'

/** bcrypt's lowest: a hash in a millisecond. */
const LOWEST_COST = 4

/** Always the same, so that a kit writes no key file and opens again what it left in a database. Protects nothing. */
const TESTING_KEY = hash('sha256', 'fastify-identity/testing', 'base64')

/** An app as the service's own process has it. */
export function createApp (options: FastifyServerOptions = {}): FastifyInstance {
  return fastify({ ...options, frameworkErrors: handleError, routerOptions: { maxParamLength: 2 * LIMITS.id } })
}

/** A test that knows how to clean up: tap's, node:test's, or anything like them. */
export type TestLike = { teardown: (close: () => Promise<void>) => unknown } | { after: (close: () => Promise<void>) => unknown }

/** The plugin's options, all of them; only `database`, `secretKey` and `bcryptCost` have other defaults. */
export interface StartOptions extends Omit<IdentityOptions, 'now'> {
  /** Closes the kit when this test ends. */
  t?: TestLike | undefined
  /**
   * Where the clock begins: a Date, milliseconds or RFC 3339 text. Absent: the present. On MongoDB not in the past: the
   * server removes what has expired by its own clock.
   */
  time?: Date | number | string
  /** An app of your own that gets the plugin; closed with the kit. Absent: a bare one. */
  app?: FastifyInstance
}

/** A running service. */
export interface TestKit extends AsyncDisposable {
  /** The app with the plugin; routes may be added until the first request or `listen`. `app.identity` holds the services. */
  readonly app: FastifyInstance
  /** Sends a request without a socket. */
  readonly inject: FastifyInstance['inject']
  /** Mints a token, and makes its user and client where they are missing. */
  readonly mint: Mint
  /** The service's time. It stands still until it is moved. */
  readonly clock: TestClock
  /** Empties the store and puts the clock back. */
  reset (): Promise<void>
  /** Listens on 127.0.0.1, on a free port unless one is given; called again, answers the same. */
  listen (options?: { port?: number }): Promise<{ url: string }>
  /** Closes the app, and the store unless it was handed in. */
  close (): Promise<void>
}

/** Every id is below it: they begin with a letter, a digit, `-` or `_`. */
const PAST_EVERY_ID = '~'

/** What a service that runs holds in memory too: its keys. */
const KEPT = ['meta', 'keys']

/** Removes all that the service keeps, but for its keys. */
export async function emptyStore (store: Store): Promise<void> {
  await Promise.all(COLLECTIONS.filter(({ name }) => !KEPT.includes(name))
    .map(({ name }) => store.collection(name).deleteMany({ before: { id: PAST_EVERY_ID } })))
}

/**
 * Starts the service in this process, on a store in memory unless `database` or `store` says otherwise.
 * @throws Error that names a wrong option
 * @example
 * const kit = await startIdentity({ t })
 * const { headers } = await kit.mint({ user: 'ann', roles: ['admin'], scopes: ['read'] })
 * const reply = await kit.inject({ url: '/api/v1/auth/tokeninfo', headers })
 */
export async function startIdentity ({ t, time, app = createApp(), ...options }: StartOptions = {}): Promise<TestKit> {
  const clock = createTestClock(time)
  const close = () => app.close()
  try {
    await app.register(identity, { database: 'sqlite::memory:', secretKey: TESTING_KEY, bcryptCost: LOWEST_COST, ...options, now: clock.now })
  } catch (error) {
    await close()
    throw error
  }
  if (t !== undefined) 'teardown' in t ? t.teardown(close) : t.after(close)
  const { store } = app.identity
  let listening: Promise<{ url: string }> | undefined
  return {
    app,
    inject: app.inject.bind(app) as FastifyInstance['inject'],
    mint: createMint(app.identity, clock.now),
    clock,
    async reset () {
      await emptyStore(store)
      clock.reset()
    },
    listen: ({ port = 0 } = {}) => (listening ??= app.listen({ port, host: '127.0.0.1' }).then((url) => ({ url }))),
    close,
    [Symbol.asyncDispose]: close
  }
}
