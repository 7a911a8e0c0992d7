import { bootstrap } from './bootstrap.ts'
import { type Accounts, createAccounts } from './accounts/index.ts'
import { DEFAULT_ACCOUNT_PATH } from './accounts/links.ts'
import { ENDED_BY_DELETION, createTickets } from './accounts/tickets.ts'
import { createEvents } from './events/index.ts'
import { isRelayed } from './events/lease.ts'
import { findOrigin } from './events/origin.ts'
import { createAcceptance } from './mail/acceptance.ts'
import { createMailMark } from './mail/mark.ts'
import { createNotices } from './notice.ts'
import { keepAddress } from './events/address.ts'
import { createAuthorityCheck } from './upstreams/authority.ts'
import { describePlace } from './place.ts'
import { createClients } from './clients/clients.ts'
import { openDocuments } from './documents/index.ts'
import { createClientQuota } from './clients/quota.ts'
import { createSecretEnds } from './clients/secret-ends.ts'
import { createSecretUses } from './clients/secret-uses.ts'
import { warnOfReserved } from './clients/reserved.ts'
import { toApiUri } from './issuer.ts'
import { createOwnData } from './export/own-data.ts'
import { createUserLines } from './export/user-lines.ts'
import { createLogouts } from './logout/logouts.ts'
import { createDecoys } from './hashes/decoys.ts'
import { createImports } from './import/index.ts'
import { createPasswords } from './users/passwords.ts'
import { createPasswordRules } from './users/password-rules.ts'
import { createAuthorizations } from './oidc/authorizations.ts'
import { createOidc } from './oidc/index.ts'
import { OUR_LANGUAGES } from './pages/texts/language.ts'
import { readBackup } from './metrics/read-backup.ts'
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
import { ACRS } from './proofs.ts'
import { checkRoleNames } from './roles.ts'
import { deriveKeys } from './crypto/derive-key.ts'
import { createHashKeys } from './crypto/hash-keys.ts'
import { createSecretBox } from './crypto/secrets.ts'
import { configureMigration } from './maintenance/migration.ts'
import { createSealing } from './maintenance/reseal.ts'
import { checkSecretKeys, isSealed } from './crypto/seal.ts'
import { findDataDir, resolveSecretKeys } from './crypto/secret-key.ts'
import { createCounter } from './throttling/counter.ts'
import { createOwnSessions } from './tokens/own-sessions.ts'
import { createTokenSessions } from './tokens/token-sessions.ts'
import { createAttempts } from './throttling/attempts.ts'
import { createKnownBrowsers } from './throttling/known-browsers.ts'
import { COLLECTIONS } from './store/collections.ts'
import { openStore } from './store/index.ts'
import { migrateDocuments } from './store/migrator.ts'
import { createIdentityEnds } from './tokens/identity-ends.ts'
import { createTokens } from './tokens/tokens.ts'
import { checkManagerRoles } from './users/manager-rules.ts'
import { createFormerImports } from './users/former-imports.ts'
import { createFormerNames } from './users/former-names.ts'
import { createStoredUsers } from './users/stored-users.ts'
import { listWithoutWay, warnOfRemoved } from './upstreams/removed.ts'
import { nameUpstream } from './upstreams/kinds.ts'
import { createUpstreamPolicy, listOwned } from './upstreams/policy.ts'
import { showItemOf } from './users/show-user.ts'
import { createUsers } from './users/users.ts'
import { createSentForms } from './sent-forms/sent-forms.ts'
import { openSignIns } from './sign-in/index.ts'
import { openWays } from './ways/index.ts'
import { findRelyingParty } from './ways/relying-party.ts'
import { createHeldFactors } from './ways/held-factors.ts'
import { createHeldIdentities } from './ways/held-identities.ts'
import { sweepOrphans } from './ways/orphans.ts'
import { DEFAULT_POLICY, type WayPolicy, listStanding } from './ways/words.ts'
import { createWebhooks } from './webhooks/webhooks.ts'
import { Outages } from './work/outage.ts'
import { type Works, watchWork } from './work/watch.ts'
import type { BackgroundWork, ServiceOptions, Services } from './services.ts'

export type { ServiceOptions, Services } from './services.ts'

/** Creates the caller of user-supplied URLs, with the hosts that the options allow. */
export function openOutbound ({ outboundHosts = [], production }: Pick<ServiceOptions, 'outboundHosts' | 'production'>): Outbound {
  try {
    return createOutbound({ allow: [...outboundHosts, ...(production ? [] : LOOPBACK_HOSTS)] })
  } catch (error) {
    throw new Error(`option outboundHosts: ${(error as Error).message}`)
  }
}

/** The names of roles that the configuration knows. */
function listRoles ({ roles, managerRoles = [], factors, upstreams = [] }: Pick<ServiceOptions, 'roles' | 'managerRoles' | 'factors' | 'upstreams'>): string[] {
  return [...Object.values(roles), ...managerRoles, ...(typeof factors === 'object' ? factors.roles : []), ...upstreams.flatMap(listOwned)]
}

/**
 * Opens the services.
 * @throws Error for a wrong option, a store that cannot be opened, and a missing or wrong secret key
 */
export async function openServices (options: ServiceOptions): Promise<Services> {
  const { roles, managerRoles, now = Date.now, onError = () => {}, onEvents = () => {}, onMailFailed = () => {}, onLogoutFailed = () => {}, onOutage = () => {}, onWarning = () => {}, processes = 1, meter } = options
  const failing = (work: BackgroundWork) => (error: unknown) => onError(error, work)
  const outages = new Outages({
    onChange (of, change, name) {
      if ('error' in change) meter?.outage(of)
      onOutage(of, change, name)
    }
  })
  meter?.readEach('outages', 'kind', 'Receivers of this kind that do not answer this process.', () => outages.count())
  /** Counts each piece of work that was given up, and then reports it. */
  const countFailed = <T>(kind: 'mail' | 'logout', tell: (delivery: T) => void) => (delivery: T): void => {
    meter?.gaveUp(kind)
    tell(delivery)
  }
  checkRoleNames(roles)
  checkManagerRoles(roles, managerRoles)
  const found = findRelyingParty(options)
  const { party } = found
  const outbound = openOutbound(options)
  const { store: handedIn, createDatabase: create = !options.production, migrates = options.dryRun !== true } = options
  const storeOptions = { collections: COLLECTIONS, now, onError: failing('store'), onWarning, create, migrate: migrates, timeout: options.storeTimeout, ...(options.walLimit !== undefined && { walLimit: options.walLimit }) }
  /** Opens a store only for this check, unless one was handed in. This happens at most once, before the key file exists. */
  async function isOpenedBefore (): Promise<boolean> {
    const store = handedIn ?? await openStore(options.database, storeOptions)
    try {
      return await isSealed(store)
    } finally {
      if (handedIn === undefined) await store.close()
    }
  }
  const box = createSecretBox(...await resolveSecretKeys(options, isOpenedBefore, onWarning, { dryRun: options.dryRun, create }))
  const opened = handedIn ?? await openStore(options.database, { ...storeOptions, renderers: registerRenderers(box.keys) })
  const store = meter === undefined ? opened : watchStore(opened, meter)
  const hashKeys = createHashKeys({ store, box })
  const decoys = createDecoys({ store, now, getKey: () => hashKeys.get('decoys'), onError: failing('users') })
  const passwords = createPasswords({ cost: options.bcryptCost, queue: options.hashQueue, processes, chooseDecoy: decoys.choose })
  const { auditDays: days, addresses, via = 'system', getLanguages = () => OUR_LANGUAGES } = options
  const acceptance = createAcceptance({ store, now, box })
  const mailMark = createMailMark({ store, now, isOwn: options.accounts?.mail !== undefined, onError: failing('mail') })
  const findPlace = () => describePlace(findOrigin()?.agent ?? '', keepAddress(findOrigin()?.address, addresses))
  const notices = createNotices({ now, findPlace, isMailed: mailMark.isMailed })
  const record = createEvents({
    store,
    now,
    via,
    days,
    addresses,
    getKey: () => hashKeys.get('events'),
    onPublish: async (event) => await logouts.makeUp(event),
    acceptMails: acceptance.accept,
    onPublished: onEvents,
    onError: failing('events'),
    getEnds: () => ({ ...tokens.ends, upstream_ends: async (id) => await upstreams?.logouts.finish(id) })
  })
  const { recorder } = record
  const { counter = createCounter() } = options
  const authorizations = createAuthorizations(store)
  const uses = createSecretUses({ store, now, onError: failing('store') })
  const ends = createSecretEnds({
    store, now, recorder, notices, onError: failing('mail'), onGivenUp: () => meter?.gaveUp('secret')
  })
  const logouts = createLogouts({ store, now, recorder, authorizations, fetch: outbound.fetch, outages, onError: failing('logouts'), onFailed: countFailed('logout', onLogoutFailed) })
  const webhooks = createWebhooks({ store, now, box, recorder, feed: record.events, outbound, outages, onError: failing('webhooks'), onWarning, onGivenUp: () => meter?.gaveUp('webhook') })
  const issued = createTokens({ store, now, roles, recorder, revocations: record.revocations, onError: failing('removals'), refreshTtl: options.refreshTtl, logouts })
  const tokens = meter === undefined ? issued : watchTokens(issued, meter)
  // Assigned below, because the services refer to each other.
  const people: { counting?: Promise<void>, accounts?: Accounts, watching?: ReturnType<typeof watchWork>, warned?: Promise<void>, sweeping?: Promise<void>, sweepingRoles?: Promise<void> } = {}
  const ending = new AbortController()
  async function close () {
    people.watching?.close()
    ending.abort()
    mailMark.close()
    await people.warned
    await people.sweeping
    await people.sweepingRoles
    await people.counting
    try {
      // Each may wait some seconds for its deliveries in flight.
      await ends.close()
      await Promise.all([webhooks.close(), people.accounts?.outbox?.close()])
      await record.close()
      await uses.close()
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
    if (migrates) await migrateDocuments(opened, { ...await configureMigration(options), now })
    if (options.dryRun !== true) {
      await resources.ensure()
      await warnOfReserved(store, onWarning)
      if (options.resources !== undefined) await resources.declareFixed(options.resources)
    }
    await hashKeys.open(options)
  } catch (error) {
    await close()
    throw error
  }
  const checkNewPassword = createPasswordRules({ min: options.passwordMin, serviceName: options.serviceName })
  const attempts = createAttempts({ store, now, key: hashKeys.get('attempts') })
  const policy: WayPolicy = { ...DEFAULT_POLICY, factors: options.factors ?? DEFAULT_POLICY.factors, passkeys: party !== undefined, relyingParty: party?.id, ...createUpstreamPolicy(options.upstreams, roles) }
  const { upstreams: configured = [] } = options
  // With none, nothing of it is loaded.
  const identityEnds = configured.length === 0 ? undefined : (await import('./upstreams/ends.ts')).createUpstreamEnds({ store, now })
  const standing = identityEnds && (await import('./upstreams/standing.ts')).createIdentityStanding({ store, now, ends: identityEnds, upstreams: configured, policy })
  const { ways, factors, passkeys, maySignIn, checkEvidence, endsSessions, warnOfForeign } = openWays({
    store,
    now,
    box,
    recorder,
    tokens,
    attempts,
    failures: record.failures,
    policy,
    found,
    serviceName: options.serviceName,
    notices,
    findPlace,
    isOver: standing?.isOver,
    onError: failing('users'),
    onWarning
  })
  people.counting = options.relaysEvents !== true || options.passkeys === false ? Promise.resolve() : warnOfForeign().catch(failing('users'))
  const tickets = createTickets({ store, now })
  const names = createFormerNames({ store, now, box, days, roles: listRoles(options) })
  const formerImports = createFormerImports({ store, now, box, days })
  const stored = createStoredUsers({
    store,
    now,
    role: roles.admin,
    recorder,
    tokens,
    endsSessions,
    onLeave: async (record) => { await Promise.all([names.remember(record), formerImports.remember(record)]) },
    onRemove: async (id) => await Promise.all([tickets.removeOf(id, ENDED_BY_DELETION), ways.removeOf(id)]),
    onError: failing('users')
  })
  const seedKey = hashKeys.get('imported seeds')
  // With none, nothing of it is loaded.
  const former = options.migrate && (await import('./former/index.ts')).openFormer({
    migrate: options.migrate, outbound, store, stored, formerImports, now, box, seedKey, roles, cost: options.bcryptCost, passwords, onWarning, count: meter?.formerSystem
  })
  if (former !== undefined) meter?.read('former_system_resting', 'Whether the former system is left alone because it gave no answer: 1 or 0.', () => Number(former.isResting()))
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
    askFormer: former?.verify,
    checkEvidence,
    onError: failing('users'),
    openFactors: factors.open,
    notices,
    removeLinks: async (user_id) => await tickets.removeOf(user_id, ['verify'])
  })
  const { enrolments, signIns } = openSignIns({
    store,
    now,
    recorder,
    users,
    ways,
    factors,
    passkeys,
    maySignIn,
    directory: findDataDir(options) ?? 'data',
    addFactor: async (actor, ids) => await people.accounts!.addFactor(actor, ids),
    renewCodes: async (actor, id) => await people.accounts!.renewCodes(actor, id),
    onWarning
  })
  meter?.read('hash_queue', 'Password hashes waiting for a thread.', passwords.countWaiting)
  if (meter !== undefined) {
    readDisk(handedIn === undefined ? options.database : undefined, meter)
    readBackup(opened, handedIn === undefined ? options.database : undefined, now, meter)
    readOutbox(opened, COLLECTIONS, now, meter)
    readRelay(opened, now, meter)
    readWebhooks(webhooks, meter)
    meter.read('client_secrets_expiring', 'Named secrets of clients that expire within 14 days.', ends.count)
  }
  const checkQuota = createClientQuota(store.collection('clients'), options.clientsPerUser)
  const clients = createClients({ store, now, box, tokens, recorder, checkQuota, uses, ends, checkUrl: outbound.checkUrl })
  const { readOutbound = (read) => read } = options
  const documents = openDocuments(options.documentHosts, {
    store, now, recorder, failures: record.failures, counter, disable: clients.disable, removeUnused: clients.removeUnused, forgetUse: uses.forget, read: readOutbound(outbound.read), outages, onRefused: options.onRefusedDocument ?? (() => {}), onError: failing('documents')
  })
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
    findOnly: (user) => {
      const id = policy.findOnly(user)
      const only = options.upstreams?.find((upstream) => upstream.id === id)
      return only && { id: only.id, name: nameUpstream(only) }
    },
    findFormer: former?.find,
    notices,
    acceptance,
    counter,
    recorder,
    onError: failing('mail'),
    onMailFailed: countFailed('mail', onMailFailed),
    mailOutage: outages.of('mail'),
    getLanguages
  }, { signUp: false, selfDelete: false, accountPath: DEFAULT_ACCOUNT_PATH, ...options.accounts })
  const { signUp = false, signUpDomains } = options.accounts ?? {}
  const upstreams = identityEnds === undefined || standing === undefined
    ? undefined
    : (await import('./upstreams/index.ts')).openUpstreams({
        ends: identityEnds, standing, identityEnds: createIdentityEnds({ store, tokens }), recorder, store, box, now, outbound, upstreams: configured, roles, stored, ways, accounts, failures: record.failures, findOnly: policy.findOnly, names, signUp, signUpDomains, outages, onDown: () => meter?.signIn('error', 'upstream')
      })
  const { outbox, retryMail } = accounts
  const ownSessions = createOwnSessions({ store, now, tokens, recorder, authorizations })
  const work: Works = { ...(outbox && { mail: { ...outbox, retry: retryMail } }), logout: logouts, webhook: webhooks.work, secret: ends.work, event: record.work }
  const watching = people.watching = watchWork(work, onWarning)
  meter?.readEach('work_stalled', 'kind', 'Whether work of this kind is due and stands still in this process: 1 or 0.', watching.read)
  if (options.sendsMail === true) {
    accounts.outbox?.start()
    await mailMark.start()
    ends.start()
  }
  if (options.relaysEvents === true) {
    record.start()
    people.warned = warnOfRemoved({ store: opened, ids: configured.map(({ id }) => id), ways, onWarning, signal: ending.signal }).catch(failing('users'))
    if (upstreams?.roleChanges !== undefined) people.sweepingRoles = (await import('./upstreams/role-changes.ts')).sweepRoles({ sweep: upstreams.roleChanges.sweep, signal: ending.signal, onError: failing('upstreams') })
    people.sweeping = sweepOrphans({ store: opened, signal: ending.signal, onError: failing('users') })
  }
  if (options.deliversWebhooks === true) webhooks.start()
  return {
    store,
    roles,
    events: record.events,
    failures: record.failures,
    accounts,
    imports: createImports({
      store,
      now,
      box,
      seedKey,
      stored,
      roles,
      cost: options.bcryptCost,
      canAddFactors: ways.canAddFactors,
      decoys,
      formerImports,
      recorder,
      countRest: options.relaysEvents === true ? passwords.countRest : async () => await isRelayed(opened, now) ? undefined : Infinity,
      invite: accounts.inviteImported,
      findUpstream: policy.findUpstream,
      isAuthority: createAuthorityCheck(configured),
      hasWayIn: ways.hasWayIn,
      onError: failing('users')
    }),
    users,
    ways,
    factors,
    enrolments,
    passkeys,
    heldIdentities: createHeldIdentities({
      store,
      ways,
      users,
      unlink: accounts.unlinkIdentity,
      replace: accounts.replaceIdentity,
      nameUpstream: (id) => upstreams?.list().find((upstream) => upstream.id === id)?.name,
      joins: (id) => configured.find((upstream) => upstream.id === id)?.link !== 'never'
    }),
    heldFactors: createHeldFactors({ store, now, ways, users, notices, removeFactor: accounts.removeFactor, issueEnrolLink: accounts.issueEnrolLink }),
    clients,
    secretEnds: ends,
    documents,
    tokens,
    resources,
    webhooks,
    ...(upstreams && { upstreams }),
    async * listWithoutWay () {
      for await (const batch of listWithoutWay(store, ways)) yield batch.map(showItemOf('expired,disabled'))
    },
    tokenSessions: createTokenSessions({ store, now, tokens, recorder, listStanding: async (user, proofs) => listStanding(proofs, await ways.withExisting(user), policy) }),
    ownSessions,
    userLines: createUserLines({ store, ways, box, recorder }),
    ownData: createOwnData({ store, now, ways, ownSessions, recorder, counter }),
    logouts,
    maySignIn,
    sentForms: createSentForms({ store, now }),
    work,
    get languages () { return getLanguages() },
    signIns: meter === undefined ? signIns : watchSignIns(signIns, meter),
    knownBrowsers: createKnownBrowsers({ keys: deriveKeys(box.keys, 'known browsers'), now }),
    oidc: createOidc({ store, tokens, maySignIn, acrs: ACRS.filter((acr) => acr !== 'phr' || party !== undefined), box, now, recorder, addresses, uses, counter, onGrant: meter?.tokens, documents, standing }),
    sealing: createSealing({ store, box, recorder }),
    bootstrap: (asked) => bootstrap({ store, users, clients, tokens, roles, now }, asked),
    close
  }
}
