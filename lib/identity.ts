import { bootstrap } from './bootstrap.ts'
import { createAccounts } from './accounts/index.ts'
import { DEFAULT_ACCOUNT_PATH } from './accounts/links.ts'
import { ENDED_BY_DELETION, createTickets } from './accounts/tickets.ts'
import { createEvents, openRelay } from './events/index.ts'
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
import { measure } from './metrics/measure.ts'
import { watchSignIns, watchTokens } from './metrics/watch-services.ts'
import { LOOPBACK_HOSTS } from './outbound/addresses.ts'
import { type Outbound, createOutbound } from './outbound/fetcher.ts'
import { createResources } from './resources/resources.ts'
import { ACRS } from './proofs.ts'
import { checkRoleNames } from './roles.ts'
import { deriveKeys } from './crypto/derive-key.ts'
import { createHashKeys } from './crypto/hash-keys.ts'
import { createSealing } from './maintenance/reseal.ts'
import { findDataDir } from './crypto/secret-key.ts'
import { createCounter } from './throttling/counter.ts'
import { createOwnSessions } from './tokens/own-sessions.ts'
import { createTokenSessions } from './tokens/token-sessions.ts'
import { createAttempts } from './throttling/attempts.ts'
import { createKnownBrowsers } from './throttling/known-browsers.ts'
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
import { openSealedStore } from './sealed-store.ts'
import type { Store } from './store/port.ts'
import type { Former } from './former/index.ts'
import type { RoleChanges } from './upstreams/role-changes.ts'
import type { WayService } from './ways/ways.ts'
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

interface ChoreParts {
  store: Store
  ways: WayService
  configured: readonly { id: string }[]
  roleChanges: Pick<RoleChanges, 'sweep'> | undefined
  warnOfForeign: (() => Promise<void>) | undefined
  signal: AbortSignal
  onWarning: (message: string) => void
  failing: (work: BackgroundWork) => (error: unknown) => void
}

/** What a process that publishes looks through once, beside its work. */
async function startChores ({ store, ways, configured, roleChanges, warnOfForeign, signal, onWarning, failing }: ChoreParts): Promise<void> {
  await Promise.all([
    warnOfForeign?.().catch(failing('users')),
    warnOfRemoved({ store, ids: configured.map(({ id }) => id), ways, onWarning, signal }).catch(failing('users')),
    sweepOrphans({ store, signal, onError: failing('users') }),
    roleChanges && import('./upstreams/role-changes.ts')
      .then(async ({ sweepRoles }) => await sweepRoles({ sweep: roleChanges.sweep, signal, onError: failing('upstreams') })).catch(failing('upstreams'))
  ])
}

/**
 * Opens one room after another: each needs rooms that are open already. Nothing runs before all are open.
 * @param closers takes what closes each of them. The last one is closed first
 */
async function openRooms (options: ServiceOptions, closers: AsyncDisposableStack): Promise<Services> {
  const {
    roles, managerRoles, auditDays: days, addresses, via = 'system', upstreams: configured = [], meter, processes = 1, counter = createCounter(), now = Date.now, getLanguages = () => OUR_LANGUAGES,
    readOutbound = (read) => read, onError = () => {}, onEvents = () => {}, onMailFailed = () => {}, onLogoutFailed = () => {}, onOutage = () => {}, onWarning = () => {}, onRefusedDocument = () => {}
  } = options
  const failing = (work: BackgroundWork) => (error: unknown) => onError(error, work)
  /** Counts each piece of work that was given up, and then reports it. */
  const countFailed = <T>(kind: 'mail' | 'logout', tell: (delivery: T) => void) => (delivery: T): void => {
    meter?.gaveUp(kind)
    tell(delivery)
  }
  checkRoleNames(roles)
  checkManagerRoles(roles, managerRoles)
  const found = findRelyingParty(options)
  const { party } = found
  const policy: WayPolicy = { ...DEFAULT_POLICY, factors: options.factors ?? DEFAULT_POLICY.factors, passkeys: party !== undefined, relyingParty: party?.id, ...createUpstreamPolicy(options.upstreams, roles) }
  const findConfigured = (id: string | undefined) => configured.find((upstream) => upstream.id === id)

  const outbound = openOutbound(options)
  closers.defer(outbound.close)
  const { box, opened, store, isOwn } = await openSealedStore({ ...options, now, onWarning, onError: failing('store') }, closers)
  const base = { store, now, box }
  const hashKeys = createHashKeys(base)
  const decoys = createDecoys({ ...base, getKey: () => hashKeys.get('decoys'), onError: failing('users') })
  const outages = new Outages({
    onChange (of, change, name) {
      if ('error' in change) meter?.outage(of)
      onOutage(of, change, name)
    }
  })
  const record = createEvents({ ...base, via, addresses, getKey: () => hashKeys.get('events'), onError: failing('events') })
  closers.defer(record.close)
  const { recorder, failures, revocations, feed } = record
  const authorizations = createAuthorizations(store)

  const resources = createResources({ ...base, recorder, onError: failing('resources'), ...(options.issuer !== undefined && { api: toApiUri(new URL(options.issuer)) }) })
  if (options.dryRun !== true) {
    await resources.ensure()
    await warnOfReserved(store, onWarning)
    if (options.resources !== undefined) await resources.declareFixed(options.resources)
  }
  await hashKeys.open(options)
  const attempts = createAttempts({ ...base, key: hashKeys.get('attempts') })
  const seedKey = hashKeys.get('imported seeds')

  const acceptance = createAcceptance(base)
  const mailMark = createMailMark({ ...base, isOwn: options.accounts?.mail !== undefined, onError: failing('mail') })
  closers.defer(mailMark.close)
  const findPlace = () => describePlace(findOrigin()?.agent ?? '', keepAddress(findOrigin()?.address, addresses))
  const notices = createNotices({ now, findPlace, isMailed: mailMark.isMailed })
  const logouts = createLogouts({ ...base, recorder, authorizations, fetch: outbound.fetch, outages, onError: failing('logouts'), onFailed: countFailed('logout', onLogoutFailed) })
  closers.defer(logouts.close)
  const issued = createTokens({ ...base, roles, recorder, revocations, onError: failing('removals'), refreshTtl: options.refreshTtl, logouts })
  closers.defer(issued.close)
  const tokens = meter === undefined ? issued : watchTokens(issued, meter)

  const uses = createSecretUses({ ...base, onError: failing('store') })
  closers.defer(uses.close)
  const secretEnds = createSecretEnds({ ...base, recorder, notices, onError: failing('mail'), onGivenUp: () => meter?.gaveUp('secret') })
  closers.defer(secretEnds.close)
  const checkQuota = createClientQuota(store.collection('clients'), options.clientsPerUser)
  const clients = createClients({ ...base, tokens, recorder, checkQuota, uses, ends: secretEnds, checkUrl: outbound.checkUrl })
  const documents = openDocuments(options.documentHosts, {
    ...base, recorder, failures, counter, disable: clients.disable, removeUnused: clients.removeUnused, forgetUse: uses.forget, read: readOutbound(outbound.read), outages, onRefused: onRefusedDocument, onError: failing('documents')
  })

  // With no upstream, nothing of them is loaded.
  const identityEnds = configured.length === 0 ? undefined : (await import('./upstreams/ends.ts')).createUpstreamEnds(base)
  const standing = identityEnds && (await import('./upstreams/standing.ts')).createIdentityStanding({ ...base, ends: identityEnds, upstreams: configured, policy })
  const { ways, factors, passkeys, maySignIn, checkEvidence, endsSessions, warnOfForeign } = openWays({
    ...base, recorder, tokens, attempts, failures, policy, found, serviceName: options.serviceName, notices, findPlace, isOver: standing && standing.isOver, onError: failing('users'), onWarning
  })
  const passwords = createPasswords({ cost: options.bcryptCost, queue: options.hashQueue, processes, chooseDecoy: decoys.choose })
  closers.defer(passwords.close)
  const checkNewPassword = createPasswordRules({ min: options.passwordMin, serviceName: options.serviceName })
  const tickets = createTickets(base)
  const names = createFormerNames({ ...base, days, roles: listRoles(options) })
  const formerImports = createFormerImports({ ...base, days })
  const stored = createStoredUsers({
    ...base,
    role: roles.admin,
    recorder,
    tokens,
    endsSessions,
    onLeave: async (record) => { await Promise.all([names.remember(record), formerImports.remember(record)]) },
    onRemove: async (id) => await Promise.all([tickets.removeOf(id, ENDED_BY_DELETION), ways.removeOf(id)]),
    onError: failing('users')
  })
  const { isResting, verify: askFormer, find: findFormer }: Partial<Former> = options.migrate === undefined
    ? {}
    : (await import('./former/index.ts')).openFormer({
        ...base, migrate: options.migrate, outbound, stored, formerImports, seedKey, roles, cost: options.bcryptCost, passwords, onWarning, count: meter?.formerSystem
      })
  const users = createUsers({
    ...base,
    stored,
    roles,
    managerRoles,
    passwords,
    checkNewPassword,
    attempts,
    recorder,
    failures,
    askFormer,
    checkEvidence,
    onError: failing('users'),
    openFactors: factors.open,
    notices,
    removeLinks: async (user_id) => await tickets.removeOf(user_id, ['verify'])
  })
  const accounts = createAccounts({
    ...base,
    stored,
    roles,
    passwords,
    clients,
    checkNewPassword,
    openPassword: users.openNewPassword,
    ways,
    findOnly: (user) => {
      const only = findConfigured(policy.findOnly(user))
      return only && { id: only.id, name: nameUpstream(only) }
    },
    findFormer,
    notices,
    acceptance,
    counter,
    recorder,
    onError: failing('mail'),
    onMailFailed: countFailed('mail', onMailFailed),
    mailOutage: outages.of('mail'),
    getLanguages
  }, { signUp: false, selfDelete: false, accountPath: DEFAULT_ACCOUNT_PATH, ...options.accounts })
  const { outbox, retryMail } = accounts
  const webhooks = createWebhooks({ ...base, recorder, feed, outbound, outages, onError: failing('webhooks'), onWarning, onGivenUp: () => meter?.gaveUp('webhook') })
  // Each may wait some seconds for its deliveries in flight.
  closers.defer(async () => { await Promise.all([webhooks.close(), outbox && outbox.close()]) })
  const { enrolments, signIns } = openSignIns({
    ...base, recorder, users, ways, factors, passkeys, maySignIn, directory: findDataDir(options) ?? 'data', addFactor: accounts.addFactor, renewCodes: accounts.renewCodes, onWarning
  })
  const { signUp = false, signUpDomains } = options.accounts ?? {}
  const upstreams = identityEnds && standing && (await import('./upstreams/index.ts')).openUpstreams({
    ...base, ends: identityEnds, standing, identityEnds: createIdentityEnds({ store, tokens }), recorder, outbound, upstreams: configured, roles, stored, ways, accounts, failures, findOnly: policy.findOnly, names, signUp, signUpDomains, outages, onDown: () => meter?.signIn('error', 'upstream')
  })
  const ownSessions = createOwnSessions({ ...base, tokens, recorder, authorizations })

  const relay = openRelay({
    ...base,
    record,
    days,
    handlers: logouts.handlers,
    acceptMails: acceptance.accept,
    ends: { ...tokens.ends, ...(upstreams && { upstream_ends: upstreams.logouts.finish }) },
    onPublished: onEvents,
    onError: failing('events')
  })
  closers.defer(relay.close)
  const work: Works = { ...(outbox && { mail: { ...outbox, retry: retryMail } }), logout: logouts, webhook: webhooks.work, secret: secretEnds.work, event: relay.work }
  const watching = watchWork(work, onWarning)
  closers.defer(watching.close)
  if (meter !== undefined) measure({ store: opened, now, database: isOwn ? options.database : undefined, outages, passwords, webhooks, secretEnds, watching, isResting }, meter)

  if (options.sendsMail === true) {
    if (outbox !== undefined) outbox.start()
    await mailMark.start()
    secretEnds.start()
  }
  if (options.relaysEvents === true) {
    relay.start()
    const stopping = new AbortController()
    const chores = startChores({ store: opened, ways, configured, roleChanges: upstreams && upstreams.roleChanges, warnOfForeign: options.passkeys === false ? undefined : warnOfForeign, signal: stopping.signal, onWarning, failing })
    closers.defer(async () => {
      stopping.abort()
      await chores
    })
  }
  if (options.deliversWebhooks === true) webhooks.start()
  return {
    store,
    roles,
    events: relay.events,
    failures,
    accounts,
    imports: createImports({
      ...base,
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
      nameUpstream: (id) => {
        const upstream = findConfigured(id)
        return upstream && nameUpstream(upstream)
      },
      joins: (id) => findConfigured(id)?.link !== 'never'
    }),
    heldFactors: createHeldFactors({ ...base, ways, users, notices, removeFactor: accounts.removeFactor, issueEnrolLink: accounts.issueEnrolLink }),
    clients,
    secretEnds,
    documents,
    tokens,
    resources,
    webhooks,
    ...(upstreams && { upstreams }),
    async * listWithoutWay () {
      for await (const batch of listWithoutWay(store, ways)) yield batch.map(showItemOf('expired,disabled'))
    },
    tokenSessions: createTokenSessions({ ...base, tokens, recorder, listStanding: async (user, proofs) => listStanding(proofs, await ways.withExisting(user), policy) }),
    ownSessions,
    userLines: createUserLines({ ...base, ways, recorder }),
    ownData: createOwnData({ ...base, ways, ownSessions, recorder, counter }),
    logouts,
    maySignIn,
    sentForms: createSentForms(base),
    work,
    get languages () { return getLanguages() },
    signIns: meter === undefined ? signIns : watchSignIns(signIns, meter),
    knownBrowsers: createKnownBrowsers({ keys: deriveKeys(box.keys, 'known browsers'), now }),
    oidc: createOidc({ ...base, tokens, maySignIn, acrs: ACRS.filter((acr) => acr !== 'phr' || party !== undefined), recorder, addresses, uses, counter, onGrant: meter?.tokens, documents, standing }),
    sealing: createSealing({ ...base, recorder }),
    bootstrap: (asked) => bootstrap({ store, users, clients, tokens, roles, now }, asked),
    close: async () => { await closers.disposeAsync() }
  }
}

/**
 * Opens the services. When one of them cannot be opened, those before it are closed.
 * @throws Error for a wrong option, a store that cannot be opened, and a missing or wrong secret key
 */
export async function openServices (options: ServiceOptions): Promise<Services> {
  const closers = new AsyncDisposableStack()
  try {
    return await openRooms(options, closers)
  } catch (error) {
    await closers.disposeAsync()
    throw error
  }
}
