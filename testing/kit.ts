import type { Event, EventListQuery } from '../schemas/event.ts'
import { hash } from 'node:crypto'
import fastify, { type FastifyInstance, type FastifyPluginAsync, type FastifyServerOptions } from 'fastify'
import fp from 'fastify-plugin'
import { LIMITS } from '../schemas/common.ts'
import { findOldestPending } from '../lib/events/oldest.ts'
import { type OpenCounter, createCounter } from '../lib/throttling/counter.ts'
import { COLLECTIONS } from '../lib/store/collections.ts'
import type { Store } from '../lib/store/port.ts'
import { handleError } from '../plugins/errors.ts'
import identity, { type IdentityOptions } from '../index.ts'
import { type TestAgent, createAgents } from './agent.ts'
import { type EnterConsole, createConsoleHelper } from './console.ts'
import { createTestClock, type TestClock } from './clock.ts'
import { type Mails, createTestMails } from './mails.ts'
import { createMint, type Mint } from './mint.ts'
import { type EnrolPasskey, createPasskeys } from './passkey.ts'
import { type AddSecret, createSecrets } from './secret.ts'
import { type AddPersonalToken, createPersonalTokenHelper } from './personal-token.ts'
import { type AddServiceToken, createServiceTokenHelper } from './service-token.ts'
import { type EnrolTotp, createTotp } from './totp.ts'
import { TEST_CLIENT, type TestUpstream, createTestUpstream } from './upstream.ts'
import { type TestWebhooks, createTestWebhooks } from './webhooks.ts'
import type { GivenUpstream } from '../schemas/upstream.ts'

/** bcrypt's lowest cost, at which a hash takes a millisecond. */
const LOWEST_COST = 4

/** A fixed key, so that a kit writes no key file and can reopen its database. It protects nothing. */
const TESTING_KEY = hash('sha256', 'fastify-identity/testing', 'base64')

/** An app with the settings of the service's own process. */
export function createApp (options: FastifyServerOptions = {}): FastifyInstance {
  return fastify({ ...options, frameworkErrors: handleError, routerOptions: { maxParamLength: LIMITS.encodedId } })
}

/** A test with a teardown hook, such as tap's or node:test's. */
export type TestLike = { teardown: (close: () => Promise<void>) => unknown } | { after: (close: () => Promise<void>) => unknown }

/**
 * All options of the plugin. `database`, `secretKey` and `bcryptCost` have different defaults here. By default `passwordMin` is 1,
 * and `writeLimit` and `clientsPerUser` are off.
 */
export interface StartOptions extends Omit<IdentityOptions, 'now'> {
  /** Closes the kit when this test ends. */
  t?: TestLike | undefined
  /**
   * Start time of the clock: a Date, milliseconds or RFC 3339 text. Absent: the present. On MongoDB it must not be in the past,
   * because the server removes expired records by its own clock.
   */
  time?: Date | number | string
  /**
   * Settings of an upstream `test`, which is a provider in this process: see `upstream` of the kit. Absent: there is none. By default it
   * says which addresses are verified, and people get accounts if `signUp` is on.
   */
  upstream?: Partial<GivenUpstream>
  /**
   * Your own app, in which the plugin is registered; or a function that makes it, and registers the plugin that it gets: so its routes can
   * have guards. It is closed with the kit. Absent: a new app.
   */
  app?: FastifyInstance | ((plugin: FastifyPluginAsync) => FastifyInstance | Promise<FastifyInstance>)
}

/** A running service. */
export interface TestKit extends AsyncDisposable {
  /** The app with the plugin. Routes can be added until the first request or `listen`. `app.identity` has the services. */
  readonly app: FastifyInstance
  /** Sends a request without a socket. */
  readonly inject: FastifyInstance['inject']
  /** Mints a token; creates its user and client if they are missing. */
  readonly mint: Mint
  /**
   * Mints a token of support staff, with the scopes of an app for them. It needs the option `roles.support`.
   * @throws Error without it
   */
  readonly support: Mint
  /** Adds an authenticator app to a user at once. With the first one, the user gets recovery codes. */
  readonly totp: EnrolTotp
  /** Adds a named secret to a confidential client, by its id or name. */
  readonly secret: AddSecret
  /** Makes a service token of a confidential client with an owner, by its id or name. */
  readonly serviceToken: AddServiceToken
  /** Makes a personal access token of a user. It needs the option `personalTokens`. */
  readonly personalToken: AddPersonalToken
  /** Signs a person in to the console. It needs the option `console`. */
  readonly console: EnterConsole
  /** Creates an agent that nobody has registered, whose document the kit serves. It needs the option `oidc.documents`. */
  readonly agent: (document?: Record<string, unknown>) => TestAgent
  /** The provider of the option `upstream`. Called, it sets what it says of whoever signs in there next, and throws without the option. */
  readonly upstream: TestUpstream
  /**
   * Adds a passkey to a user at once, on an authenticator in software. With the first factor, the user gets recovery codes. It takes an
   * issuer with a name, such as `oidc: { issuer: 'http://localhost' }`.
   */
  readonly passkey: EnrolPasskey
  /** The service's clock, for expiry and limits alike. It does not advance by itself. */
  readonly clock: TestClock
  /** The sent mails. They stay in this process, unless the option `mail` is set. */
  readonly mails: Mails
  /** The recorded events, up to the latest. */
  readonly events: {
    /** Lists the matching events, the earliest first. Without a query: all events since the start or the last reset. */
    list (query?: Pick<EventListQuery, 'type' | 'user' | 'client' | 'from' | 'to'>): Promise<Event[]>
  }
  /** Publishes events, delivers them to webhooks, and sends all mails and logout tokens that are due by the kit's clock. */
  flush (): Promise<void>
  /** Receivers of webhooks. */
  readonly webhooks: TestWebhooks
  /** Empties the store, the mails and the receivers of webhooks, deletes all counts of attempts, and resets the clock. */
  reset (): Promise<void>
  /** Listens on 127.0.0.1, on a free port unless one is given. A second call returns the same URL. */
  listen (options?: { port?: number }): Promise<{ url: string }>
  /** Closes the app, and the store unless it was handed in. */
  close (): Promise<void>
}

/** What a kit without the option `upstream` has instead. */
const noUpstream = (() => { throw new Error('the kit has no upstream: set its option upstream') }) as unknown as TestUpstream

/** Sorts after every id, because ids begin with a letter, a digit, `-` or `_`. */
const AFTER_EVERY_ID = '~'

/** Collections that a running service has cached: its keys and the state of the feed. */
const PRESERVED = ['meta', 'keys', 'feed']

/** Deletes all records except those of PRESERVED. */
export async function emptyStore (store: Store): Promise<void> {
  await Promise.all(COLLECTIONS.filter(({ name }) => !PRESERVED.includes(name))
    .map(({ name }) => store.collection(name).deleteMany({ before: { id: AFTER_EVERY_ID } })))
}

/**
 * Starts the service in this process, in memory unless `database` or `store` is given.
 * @throws Error that names an invalid option
 * @example
 * const kit = await startIdentity({ t })
 * const { headers } = await kit.mint({ user: 'ann', roles: ['admin'] })
 * const reply = await kit.inject({ url: '/api/v1/user/list', headers })
 * const narrowed = await kit.mint({ user: 'ann', scopes: ['account:read'] })
 */
export async function startIdentity ({ t, time, upstream: asked, app: given = createApp(), ...options }: StartOptions = {}): Promise<TestKit> {
  const clock = createTestClock(time)
  let attempts = createCounter(clock.now)
  const counter: OpenCounter = {
    count: (...attempt) => attempts.count(...attempt),
    read: (accounts) => attempts.read(accounts),
    open: (accounts) => attempts.open(accounts)
  }
  let app!: FastifyInstance
  const close = async () => await app?.close()
  const flush = async () => {
    await app.identity.tokens.settle()
    await app.identity.secretEnds.flush()
    await app.identity.events.flush()
    await app.identity.accounts.outbox?.flush()
    await app.identity.logouts.flush()
    await app.identity.webhooks.flush()
  }
  const receivers = createTestWebhooks(() => app.identity, flush, clock.now)
  const { mail, mails, clear } = createTestMails(flush, async () => await findOldestPending(app.identity.store) !== undefined)
  const agents = createAgents(() => app)
  const { readOutbound = (read) => read } = options
  const upstream = asked && await createTestUpstream()
  const upstreams = upstream && [
    {
      id: 'test',
      kind: 'oidc' as const,
      name: 'Test',
      issuer: upstream.issuer,
      emails: 'verified' as const,
      create: options.signUp === true,
      ...TEST_CLIENT,
      ...asked
    }, ...options.upstreams ?? []
  ]
  const plugin = fp(async (instance: FastifyInstance) => {
    // Closed also if the function that makes the app fails after this.
    app ??= instance
    instance.addHook('onClose', receivers.close)
    if (upstream !== undefined) instance.addHook('onClose', upstream.close)
    await instance.register(identity, {
      ...(options.oidc !== false && { mail }),
      database: 'sqlite::memory:',
      secretKey: TESTING_KEY,
      bcryptCost: LOWEST_COST,
      passwordMin: 1,
      writeLimit: false,
      clientsPerUser: false,
      counter,
      ...options,
      readOutbound: (read) => agents.wrap(readOutbound(read)),
      ...(upstreams && { upstreams }),
      now: clock.now
    })
  })
  try {
    if (typeof given === 'function') app = await given(plugin)
    else await (app = given).register(plugin)
    await app.after()
    if (!app.hasDecorator('identity')) throw new Error('app: the function has not registered the plugin that it got')
  } catch (error) {
    await close()
    throw error
  }
  if (t !== undefined) 'teardown' in t ? t.teardown(close) : t.after(close)
  const { store } = app.identity
  const mint = createMint(app.identity, clock.now)
  let listening: Promise<{ url: string }> | undefined
  return {
    app,
    inject: app.inject.bind(app),
    mint,
    async support (request = {}) {
      const { support } = app.identity.roles
      if (support === undefined) throw new Error('roles.support: names no role of support staff')
      return await mint({ roles: [support], scopes: ['users:read', 'users:support'], ...request })
    },
    totp: createTotp(app.identity, clock.now),
    secret: createSecrets(app.identity, clock.now),
    serviceToken: createServiceTokenHelper(app.identity, clock.now),
    personalToken: createPersonalTokenHelper(app.identity, clock.now),
    console: createConsoleHelper(() => app, options.console ? (options.prefix ?? '') + options.console.path : undefined),
    agent: agents.create,
    passkey: createPasskeys(app),
    mails,
    upstream: upstream ?? noUpstream,
    events: {
      async list (query = {}) {
        const { events } = app.identity
        await events.flush()
        const found: Event[] = []
        for await (const batch of events.list({ ...query, sort: 'time:asc', limit: 0 })) found.push(...batch)
        return found
      }
    },
    webhooks: receivers.webhooks,
    flush,
    clock,
    async reset () {
      await app.identity.tokens.settle()
      await app.identity.events.flush()
      await app.identity.accounts.outbox?.settle()
      await app.identity.logouts.settle()
      clear()
      receivers.clear()
      agents.clear()
      await emptyStore(store)
      clock.reset()
      attempts = createCounter(clock.now)
      // Look-ups need the registry of resources, which also contains the resources of the options.
      await app.identity.resources.ensure()
      await app.identity.resources.declareFixed(options.resources ?? [])
    },
    listen: ({ port = 0 } = {}) => (listening ??= app.listen({ port, host: '127.0.0.1' }).then((url) => ({ url }))),
    close,
    [Symbol.asyncDispose]: close
  }
}
