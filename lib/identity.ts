import { bootstrap } from './bootstrap.ts'
import { type Accounts, createAccounts } from './accounts/index.ts'
import { DEFAULT_ACCOUNT_PATH } from './accounts/links.ts'
import { ENDED_BY_DELETION, createTickets } from './accounts/tickets.ts'
import { createEvents } from './events/index.ts'
import { findOrigin, nameCaller } from './events/origin.ts'
import { keepAddress } from './events/address.ts'
import { describePlace } from './place.ts'
import { createClients } from './clients/clients.ts'
import { createClientQuota } from './clients/quota.ts'
import { toApiUri } from './issuer.ts'
import { createLogouts } from './logout/logouts.ts'
import { createPasswords } from './users/passwords.ts'
import { createPasswordRules } from './users/password-rules.ts'
import { createAuthorizations } from './oidc/authorizations.ts'
import { createOidc } from './oidc/index.ts'
import { OUR_LANGUAGES } from './pages/texts/language.ts'
import { readOutbox } from './metrics/read-outbox.ts'
import { readRelay } from './metrics/read-relay.ts'
import { readWebhooks } from './metrics/read-webhooks.ts'
import { readDisk } from './metrics/read-disk.ts'
import { watchSignIns, watchTokens } from './metrics/watch-services.ts'
import { watchStore } from './metrics/watch-store.ts'
import { registerRenderers } from './renderers.ts'
import { LOOPBACK_HOSTS } from './outbound/addresses.ts'
import { type Outbound, createOutbound } from './outbound/fetcher.ts'
import { createResources } from './resources/resources.ts'
import { checkRoleNames } from './roles.ts'
import { deriveKey } from './crypto/derive-key.ts'
import { createSecretBox } from './crypto/secrets.ts'
import { createSealing } from './maintenance/reseal.ts'
import { checkSecretKeys, isSealed } from './crypto/seal.ts'
import { findDataDir, resolveSecretKeys } from './crypto/secret-key.ts'
import { createCounter } from './throttling/counter.ts'
import { createOwnSessions } from './tokens/own-sessions.ts'
import { createTokenSessions } from './tokens/token-sessions.ts'
import { createSignIns } from './sign-in/sign-ins.ts'
import { createFirstSecrets } from './sign-in/first-secrets.ts'
import { createRecoveryStep, createTotpStep } from './sign-in/steps/code.ts'
import { createPasswordStep } from './sign-in/steps/password.ts'
import { createAttempts } from './throttling/attempts.ts'
import { createKnownBrowsers } from './throttling/known-browsers.ts'
import { COLLECTIONS } from './store/collections.ts'
import { openStore } from './store/index.ts'
import { migrateDocuments } from './store/migrator.ts'
import { LAYOUT } from './store/state.ts'
import { createTokens } from './tokens/tokens.ts'
import { createMarking } from './users/administrators.ts'
import { checkManagerRoles } from './users/manager-rules.ts'
import { createStoredUsers } from './users/stored-users.ts'
import { createUsers } from './users/users.ts'
import { createEvidenceCheck } from './ways/evidence.ts'
import { createJudge } from './ways/may-sign-in.ts'
import { createFactors } from './ways/factors.ts'
import { createHeldFactors } from './ways/held-factors.ts'
import { createWays } from './ways/ways.ts'
import { DEFAULT_POLICY, type WayPolicy, endsSessions } from './ways/words.ts'
import { createWebhooks } from './webhooks/webhooks.ts'
import { type Works, watchWork } from './work/watch.ts'
import type { BackgroundWork, ServiceOptions, Services } from './services.ts'

export type { ServiceOptions, Services } from './services.ts'

/** Creates the caller of user-supplied URLs, with the hosts that the options allow. */
function openOutbound ({ outboundHosts = [], production }: ServiceOptions): Outbound {
  try {
    return createOutbound({ allow: [...outboundHosts, ...(production ? [] : LOOPBACK_HOSTS)] })
  } catch (error) {
    throw new Error(`option outboundHosts: ${(error as Error).message}`)
  }
}

/**
 * Opens the services.
 * @throws Error for a wrong option, a store that cannot be opened, and a missing or wrong secret key
 */
export async function openServices (options: ServiceOptions): Promise<Services> {
  const { roles, managerRoles, now = Date.now, onError = () => {}, onEvents = () => {}, onMailFailed = () => {}, onLogoutFailed = () => {}, onWarning = () => {}, processes = 1, meter } = options
  const failing = (work: BackgroundWork) => (error: unknown) => onError(error, work)
  checkRoleNames(roles)
  checkManagerRoles(roles, managerRoles)
  const outbound = openOutbound(options)
  const { store: handedIn, createDatabase: create = !options.production } = options
  const storeOptions = { collections: COLLECTIONS, now, onError: failing('store'), onWarning, create, timeout: options.storeTimeout, ...(options.walLimit !== undefined && { walLimit: options.walLimit }) }
  /** Opens a store only for this check, unless one was handed in. This happens at most once, before the key file exists. */
  async function isOpenedBefore (): Promise<boolean> {
    const store = handedIn ?? await openStore(options.database, storeOptions)
    try {
      return await isSealed(store)
    } finally {
      if (handedIn === undefined) await store.close()
    }
  }
  const box = createSecretBox(...await resolveSecretKeys(options, isOpenedBefore, onWarning, options.dryRun))
  const opened = handedIn ?? await openStore(options.database, { ...storeOptions, renderers: registerRenderers(box.keys) })
  const store = meter === undefined ? opened : watchStore(opened, meter)
  const passwords = createPasswords({ cost: options.bcryptCost, queue: options.hashQueue, processes })
  const { auditDays: days, addresses, via = 'system', getLanguages = () => OUR_LANGUAGES } = options
  const record = createEvents({
    store,
    now,
    via,
    days,
    addresses,
    key: deriveKey(box.key, 'events'),
    onPublish: async (event) => await logouts.makeUp(event),
    onPublished: onEvents,
    onError: failing('events'),
    getEnds: () => tokens.ends
  })
  const { recorder } = record
  const { counter = createCounter() } = options
  const authorizations = createAuthorizations(store)
  const logouts = createLogouts({ store, now, recorder, authorizations, fetch: outbound.fetch, onError: failing('logouts'), onFailed: onLogoutFailed })
  const webhooks = createWebhooks({ store, now, box, recorder, feed: record.events, outbound, onError: failing('webhooks'), onWarning })
  const issued = createTokens({ store, now, roles, recorder, revocations: record.revocations, onError: failing('removals'), refreshTtl: options.refreshTtl, logouts })
  const tokens = meter === undefined ? issued : watchTokens(issued, meter)
  // Assigned below, because the services refer to each other.
  const people: { accounts?: Accounts, watching?: ReturnType<typeof watchWork> } = {}
  async function close () {
    people.watching?.close()
    try {
      // Each may wait some seconds for its deliveries in flight.
      await Promise.all([webhooks.close(), people.accounts?.outbox?.close()])
      await record.close()
      await passwords.close()
      await tokens.close()
      await logouts.close()
      await outbound.close()
    } finally {
      if (handedIn === undefined) await store.close()
    }
  }
  const resources = createResources({ store, now, recorder, onError: failing('resources'), ...(options.issuer !== undefined && { api: toApiUri(new URL(options.issuer)) }) })
  try {
    await checkSecretKeys(store, box.keyIds, options, options.dryRun)
    if (options.dryRun !== true) {
      await migrateDocuments(opened, { layout: LAYOUT, now, marking: createMarking(roles.admin) })
      await resources.ensure()
      if (options.resources !== undefined) await resources.declareFixed(options.resources)
    }
  } catch (error) {
    await close()
    throw error
  }
  const checkNewPassword = createPasswordRules({ min: options.passwordMin, serviceName: options.serviceName })
  const attempts = createAttempts({ store, now, key: deriveKey(box.key, 'attempts') })
  const policy: WayPolicy = { ...DEFAULT_POLICY, factors: options.factors ?? DEFAULT_POLICY.factors }
  const ways = createWays({ store, now, recorder, tokens, policy, onError: failing('users') })
  const factors = createFactors({
    store,
    now,
    ways,
    box,
    attempts,
    recorder,
    failures: record.failures,
    serviceName: options.serviceName ?? 'fastify-identity',
    told: {
      used: async (user_id, left) => await people.accounts?.notifyOfCode(user_id, left),
      closed: async (user_id, id) => await people.accounts?.notifyOfClosed(user_id, id)
    }
  })
  const tickets = createTickets({ store, now })
  const stored = createStoredUsers({
    store,
    now,
    role: roles.admin,
    recorder,
    tokens,
    endsSessions: async (record, roles) => endsSessions(await ways.withExisting(record), roles, policy),
    onRemove: async (id) => await Promise.all([tickets.removeOf(id, ENDED_BY_DELETION), ways.removeOf(id)]),
    onError: failing('users')
  })
  const users = createUsers({
    store,
    stored,
    now,
    roles,
    managerRoles,
    passwords,
    checkNewPassword,
    attempts,
    recorder,
    failures: record.failures,
    checkEvidence: createEvidenceCheck({ ways, policy }),
    onError: failing('users'),
    openFactors: factors.open,
    onPasswordChange: async (user) => await people.accounts?.notifyOfPassword(user),
    onAddressChange: async (user, former) => await people.accounts?.notifyOfAddress(user, former),
    onAddressVerified: async (user) => await people.accounts?.finishVerification(user)
  })
  const removeFirstSecrets = createFirstSecrets({ store, directory: findDataDir(options) ?? 'data', onWarning })
  const maySignIn = createJudge({ store, now, ways, policy })
  const signIns = createSignIns({
    store,
    now,
    places: [[createPasswordStep(users)], [createTotpStep(factors), createRecoveryStep(factors)]],
    maySignIn,
    async onDone (user_id) {
      nameCaller({ user_id })
      await recorder.insert({ type: 'sign_in.succeeded', id: user_id })
      await removeFirstSecrets(user_id)
    }
  })
  meter?.read('hash_queue', 'Password hashes waiting for a thread.', passwords.countWaiting)
  if (meter !== undefined) {
    readDisk(handedIn === undefined ? options.database : undefined, meter)
    readOutbox(opened, COLLECTIONS, now, meter)
    readRelay(opened, now, meter)
    readWebhooks(webhooks, meter)
  }
  const checkQuota = createClientQuota(store.collection('clients'), options.clientsPerUser)
  const clients = createClients({ store, now, box, tokens, recorder, checkQuota, checkUrl: outbound.checkUrl })
  const accounts = people.accounts = createAccounts({
    store,
    stored,
    now,
    roles,
    passwords,
    clients,
    box,
    checkNewPassword,
    openPassword: users.openNewPassword,
    ways,
    findPlace: () => describePlace(findOrigin()?.agent ?? '', keepAddress(findOrigin()?.address, addresses)),
    counter,
    recorder,
    onError: failing('mail'),
    onMailFailed,
    getLanguages
  }, { signUp: false, selfDelete: false, accountPath: DEFAULT_ACCOUNT_PATH, ...options.accounts })
  const { outbox, retryMail } = accounts
  const work: Works = { ...(outbox && { mail: { ...outbox, retry: retryMail } }), logout: logouts, webhook: webhooks.work, event: record.work }
  const watching = people.watching = watchWork(work, onWarning)
  meter?.readEach('work_stalled', 'kind', 'Whether work of this kind is due and stands still in this process: 1 or 0.', watching.read)
  if (options.sendsMail === true) accounts.outbox?.start()
  if (options.relaysEvents === true) record.start()
  if (options.deliversWebhooks === true) webhooks.start()
  return {
    store,
    roles,
    events: record.events,
    failures: record.failures,
    accounts,
    users,
    ways,
    factors,
    heldFactors: createHeldFactors({ store, ways, users, removeFactor: accounts.removeFactor, onReset: accounts.notifyOfReset }),
    clients,
    tokens,
    resources,
    webhooks,
    tokenSessions: createTokenSessions({ store, now, tokens, recorder }),
    ownSessions: createOwnSessions({ store, now, tokens, recorder, authorizations }),
    logouts,
    maySignIn,
    work,
    get languages () { return getLanguages() },
    signIns: meter === undefined ? signIns : watchSignIns(signIns, meter),
    knownBrowsers: createKnownBrowsers({ key: deriveKey(box.key, 'known browsers'), now }),
    oidc: createOidc({ store, tokens, maySignIn, box, now, recorder, addresses, counter, onGrant: meter?.tokens }),
    sealing: createSealing({ store, box, recorder }),
    bootstrap: (asked) => bootstrap({ store, users, clients, tokens, roles, now }, asked),
    close
  }
}
