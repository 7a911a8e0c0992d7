import { bootstrap } from './bootstrap.ts'
import { createAnswers } from './answers/index.ts'
import { createAccounts } from './accounts/index.ts'
import { DEFAULT_ACCOUNT_PATH } from './accounts/links.ts'
import { ENDED_BY_DELETION, createTickets } from './tickets/tickets.ts'
import { createEvents, openRelay } from './events/index.ts'
import { isRelayed } from './events/lease.ts'
import { findOrigin } from './events/origin.ts'
import { createAcceptance } from './mail/acceptance.ts'
import { createMailMark } from './mail/mark.ts'
import { createNotices } from './notice.ts'
import { keepAddress } from './events/address.ts'
import { createAuthorityCheck } from './upstreams/authority.ts'
import { describeDevice } from './device.ts'
import { createLeaks } from './clients/leaks.ts'
import { createLogos } from './clients/logos.ts'
import { createClients } from './clients/clients.ts'
import { openDocuments } from './client-documents/index.ts'
import { createClientQuota } from './clients/quota.ts'
import { createSecretEnds } from './clients/secret-ends.ts'
import { createUses } from './tokens/uses.ts'
import { toUserHolder } from './records/token.ts'
import type { UserRecord } from './records/user.ts'
import type { PersonalTokenService } from './personal-tokens/index.ts'
import type { IdentityStanding } from './upstreams/standing.ts'
import { createNamedTokens } from './clients/named-tokens.ts'
import { createServiceTokens } from './clients/service-tokens.ts'
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
import { createAccountLimits } from './throttling/account-limits.ts'
import { createOwnSessions } from './sessions/own-sessions.ts'
import { createTokenSessions } from './sessions/token-sessions.ts'
import { createUserSessions } from './sessions/user-sessions.ts'
import { createAttempts } from './throttling/attempts.ts'
import { createKnownBrowsers } from './throttling/known-browsers.ts'
import { createIdentityEnds } from './sessions/identity-ends.ts'
import { createTokens } from './tokens/tokens.ts'
import { checkManagerRoles } from './users/manager-rules.ts'
import { createFormerImports } from './users/former-imports.ts'
import { createFormerNames } from './users/former-names.ts'
import { createUserChanges } from './user-changes/user-changes.ts'
import { createStoredUsers } from './users/stored-users.ts'
import { listWithoutWay, warnOfRemoved } from './upstreams/removed.ts'
import { nameUpstream } from './upstreams/kinds.ts'
import { createUpstreamPolicy, listOwned } from './upstreams/policy.ts'
import { showItemOf } from './users/show-user.ts'
import { countHolders } from './users/people.ts'
import { createUsers } from './users/users.ts'
import { createSentForms } from './sent-forms/sent-forms.ts'
import { openSignIns } from './sign-in/index.ts'
import { openWays } from './ways/index.ts'
import { type FoundParty, findRelyingParty } from './ways/relying-party.ts'
import { createHeldFactors } from './accounts/held-factors.ts'
import { createHeldIdentities } from './accounts/held-identities.ts'
import { createHeldMails } from './accounts/held-mails.ts'
import { sweepOrphans } from './ways/orphans.ts'
import { DEFAULT_POLICY, type WayPolicy, listStanding } from './ways/words.ts'
import { createWebhooks } from './webhooks/webhooks.ts'
import { Outages } from './work/outage.ts'
import { openSealedStore } from './sealed-store.ts'
import type { Store } from './store/port.ts'
import type { Former } from './lazy-migration/index.ts'
import type { RoleChanges } from './upstreams/role-changes.ts'
import type { WayService } from './ways/ways.ts'
import { type Works, watchWork } from './work/watch.ts'
import type { Base } from './base.ts'
import type { ServiceOptions, Services } from './services.ts'
import { readMessage } from './failure.ts'

export type { ServiceOptions, Services } from './services.ts'

/** Creates the caller of user-supplied URLs, with the hosts that the options allow. */
export function openOutbound ({ outboundHosts = [], production }: Pick<ServiceOptions, 'outboundHosts' | 'production'>): Outbound {
  try {
    return createOutbound({ allow: [...outboundHosts, ...(production ? [] : LOOPBACK_HOSTS)] })
  } catch (error) {
    throw new Error(`option outboundHosts: ${readMessage(error)}`)
  }
}

/** The names of roles that the configuration knows. */
function listRoles ({ roles, managerRoles = [], factors, upstreams = [] }: Pick<ServiceOptions, 'roles' | 'managerRoles' | 'factors' | 'upstreams'>): string[] {
  return [...Object.values(roles), ...managerRoles, ...(typeof factors === 'object' ? factors.roles : []), ...upstreams.flatMap(listOwned)]
}

/** Who may prove what, and what they must, by the options. */
function readPolicy (options: ServiceOptions, { party }: FoundParty): WayPolicy {
  const { factors = DEFAULT_POLICY.factors, upstreams, roles } = options
  return { ...DEFAULT_POLICY, factors, passkeys: party !== undefined, relyingParty: party?.id, ...createUpstreamPolicy(upstreams, roles) }
}

interface ChoreParts {
  store: Store
  ways: WayService
  configured: readonly { id: string }[]
  roleChanges: Pick<RoleChanges, 'sweep'> | undefined
  warnOfForeign: (() => Promise<void>) | undefined
  /** The role of support staff. Absent: there is none. */
  support: string | undefined
  /** Counts the personal access tokens that are valid. Absent: there are none. */
  countTokens: ((signal: AbortSignal) => Promise<number>) | undefined
  onWarning: (message: string) => void
  onInfo: (message: string) => void
  report: Base['report']
}

/** What a process that publishes looks through once, beside its work. */
function createChores ({ store, ways, configured, roleChanges, warnOfForeign, support, countTokens, onWarning, onInfo, report }: ChoreParts) {
  const stopping = new AbortController()
  const { signal } = stopping
  const running: Promise<void>[] = []

  /** Gives and takes roles for people who have not signed in since the maps of upstreams were changed. */
  async function giveRoles (sweep: RoleChanges['sweep']): Promise<void> {
    const { sweepRoles } = await import('./upstreams/role-changes.ts')
    await sweepRoles({ sweep, signal, onError: report('upstreams') })
  }

  /** Other apps may have given the role to people before it had a meaning here. */
  async function tellOfSupport (role: string): Promise<void> {
    onInfo(`roles.support: users who hold the role ${role}, and are support staff: ${await countHolders(store, role, signal)}`)
  }

  /** Tokens that were made before the option was turned off work again once it is on. */
  async function tellOfTokens (count: NonNullable<typeof countTokens>): Promise<void> {
    onInfo(`personalTokens: personal access tokens that are valid: ${await count(signal)}`)
  }

  /** What was stopped by `close` is no failure. */
  const reportRunning = (error: unknown): void => { if (!signal.aborted) report('users')(error) }

  return {
    start (): void {
      running.push(
        ...(support === undefined ? [] : [tellOfSupport(support).catch(reportRunning)]),
        ...(countTokens === undefined ? [] : [tellOfTokens(countTokens).catch(reportRunning)]),
        ...(warnOfForeign === undefined ? [] : [warnOfForeign().catch(report('users'))]),
        warnOfRemoved({ store, ids: configured.map(({ id }) => id), ways, onWarning, signal }).catch(report('users')),
        sweepOrphans({ store, signal, onError: report('users') }),
        ...(roleChanges === undefined ? [] : [giveRoles(roleChanges.sweep).catch(report('upstreams'))])
      )
    },

    async close (): Promise<void> {
      stopping.abort()
      await Promise.all(running)
    }
  }
}

/**
 * Opens one room after another, in the order of ROOMS (eslint.config.js): each needs rooms that are open already. Nothing runs before all are
 * open, and then all are started at one place.
 * @param closers takes what closes each of them. The last one is closed first
 */
async function openRooms (options: ServiceOptions, closers: AsyncDisposableStack): Promise<Services> {
  const {
    roles, managerRoles, auditDays: days, addresses, via = 'system', upstreams: configured = [], meter, processes = 1,
    counter = createCounter(), now = Date.now, getLanguages = () => OUR_LANGUAGES, readOutbound = (read) => read,
    onError = () => {}, onEvents = () => {}, onMailFailed = () => {}, onLogoutFailed = () => {}, onOutage = () => {}, onWarning = () => {}, onInfo = () => {},
    onRefusedDocument = () => {}
  } = options
  const { sendsMail = false, relaysEvents = false, deliversWebhooks = false } = options
  const { signUp = false, signUpDomains, undoFactors: undoHours } = options.accounts ?? {}
  const report: Base['report'] = (work) => (error) => onError(error, work)
  /** Counts each piece of work that was given up, and then reports it. */
  const countFailed = <T>(kind: 'mail' | 'logout', tell: (delivery: T) => void) => (delivery: T): void => {
    meter?.gaveUp(kind)
    tell(delivery)
  }
  checkRoleNames(roles)
  checkManagerRoles(roles, managerRoles)
  const found = findRelyingParty(options)
  const policy = readPolicy(options, found)
  const findConfigured = (id: string | undefined) => configured.find((upstream) => upstream.id === id)

  const outbound = openOutbound(options)
  closers.defer(outbound.close)
  const { box, opened, store, isOwn } = await openSealedStore({ ...options, now, onWarning, onError: report('store') }, closers)
  const hashKeys = createHashKeys({ store, box })
  await hashKeys.open(options)
  const decoys = createDecoys({ store, now, getKey: () => hashKeys.get('decoys'), onError: report('users') })
  const outages = new Outages({
    onChange (of, change, name) {
      if ('error' in change) meter?.outage(of)
      onOutage(of, change, name)
    }
  })
  const attempts = createAttempts({ store, now, key: hashKeys.get('attempts') })
  // Only processes that serve the pages count attempts. Commands do not.
  const servesPages = options.counter !== undefined && options.accounts?.getIssuer !== undefined
  const limits = createAccountLimits({ counter, now, isAlone: servesPages && store.engine === 'sqlite' })
  const knownBrowsers = createKnownBrowsers({ keys: deriveKeys(box.keys, 'known browsers'), now })
  const record = createEvents({ store, now, via, addresses, getKey: () => hashKeys.get('events'), onError: report('events') })
  closers.defer(record.close)
  const { recorder, failures, revocations, feed } = record
  const base: Base = { store, now, box, recorder, roles, report }
  const seedKey = hashKeys.get('imported seeds')

  const authorizations = createAuthorizations(store)
  const sentForms = createSentForms(base)
  const resources = createResources({ ...base, api: options.issuer === undefined ? undefined : toApiUri(new URL(options.issuer)) })
  if (options.dryRun !== true) {
    await resources.ensure()
    await warnOfReserved(store, onWarning)
    if (options.resources !== undefined) await resources.declareFixed(options.resources)
  }
  const acceptance = createAcceptance(base)
  const mailMark = createMailMark({ ...base, isOwn: options.accounts?.mail !== undefined })
  closers.defer(mailMark.close)
  const findDevice = () => describeDevice(findOrigin()?.agent ?? '', keepAddress(findOrigin()?.address, addresses))
  const notices = createNotices({ now, findDevice, isMailed: mailMark.isMailed })
  const logouts = createLogouts({
    ...base, authorizations, fetch: outbound.fetch, outages, onFailed: countFailed('logout', onLogoutFailed)
  })
  closers.defer(logouts.close)
  const uses = createUses({ ...base, addresses })
  closers.defer(uses.close)
  // With no personal access tokens, nothing of them is loaded.
  const personal = options.personalTokens ? { ...await import('./personal-tokens/index.ts'), settings: options.personalTokens } : undefined
  const showPersonal = personal?.createPersonalRule(personal.settings)
  // Opened below, with the rooms that they need.
  const later: { standing?: Pick<IdentityStanding, 'isPastToken'> | undefined, personalTokens?: Pick<PersonalTokenService, 'count'> | undefined } = {}
  const issued = createTokens({
    ...base,
    revocations,
    refreshTtl: options.refreshTtl,
    logouts,
    uses,
    personal: showPersonal && { show: showPersonal, isPast: (user) => later.standing?.isPastToken(user) ?? null }
  })
  closers.defer(issued.close)
  // With no metrics, nothing of them is loaded.
  const metrics = meter && { meter, ...await import('./metrics/index.ts') }
  const tokens = metrics === undefined ? issued : metrics.watchTokens(issued, metrics.meter)
  const countTokens = personal && (async (user: UserRecord) => await later.personalTokens?.count(user) ?? 0)
  const changes = createUserChanges({ ...base, tokens, countTokens })
  const secretEnds = createSecretEnds({ ...base, notices, uses, showPersonal, onGivenUp: () => meter?.gaveUp('secret') })
  closers.defer(secretEnds.close)
  const checkQuota = createClientQuota(store.collection('clients'), options.clientsPerUser)
  const clients = createClients({ ...base, tokens, checkQuota, uses, ends: secretEnds, checkUrl: outbound.checkUrl })
  const named = createNamedTokens({ ...base, tokens, uses, ends: secretEnds, showPersonal })
  const serviceTokens = createServiceTokens({ ...base, tokens, named, ends: secretEnds, clients })
  const leaks = createLeaks({ store, tokens, clients })
  const logos = createLogos({ ...base, read: readOutbound(outbound.read), onWarning })
  closers.defer(logos.close)
  const documents = openDocuments(options.documentHosts, {
    ...base,
    failures,
    counter,
    disable: clients.disable,
    removeUnused: clients.removeUnused,
    forgetUse: uses.forget,
    read: readOutbound(outbound.read),
    outages,
    onRefused: onRefusedDocument
  })

  const tickets = createTickets(base)
  const passwords = createPasswords({ cost: options.bcryptCost, queue: options.hashQueue, processes, chooseDecoy: decoys.choose })
  closers.defer(passwords.close)
  const { ways, factors, passkeys, ownFactors, checkEvidence, endsSessions, warnOfForeign } = openWays({
    ...base, changes, attempts, failures, policy, found, serviceName: options.serviceName, tickets, notices, undoHours, slow: passwords, onWarning
  })
  const checkNewPassword = createPasswordRules({ min: options.passwordMin, serviceName: options.serviceName })
  const names = createFormerNames({ ...base, days, roles: listRoles(options) })
  const formerImports = createFormerImports({ ...base, days })
  const stored = createStoredUsers({
    ...base,
    changes,
    tokens,
    endsSessions,
    onLeave: async (record) => { await Promise.all([names.remember(record), formerImports.remember(record)]) },
    onRemove: async (id) => await Promise.all([tickets.removeOf(id, ENDED_BY_DELETION), ways.removeOf(id)])
  })
  const { isResting, canAsk: canAskFormer, verify: askFormer, find: findFormer }: Partial<Former> = options.migrate === undefined
    ? {}
    : (await import('./lazy-migration/index.ts')).openFormer({
        ...base, migrate: options.migrate, outbound, stored, formerImports, seedKey, cost: options.bcryptCost, passwords, onWarning, count: meter?.formerSystem
      })
  const users = createUsers({
    ...base,
    stored,
    managerRoles,
    passwords,
    checkNewPassword,
    attempts,
    failures,
    askFormer,
    checkEvidence,
    openFactors: factors.open,
    notices,
    limits,
    removeLinks: async (user_id) => await tickets.removeOf(user_id, ['verify'])
  })
  const personalTokens = personal?.createPersonalTokens({
    ...base, settings: personal.settings, tokens, named, ends: secretEnds, notices, users, requireUser: stored.requireUser
  })
  later.personalTokens = personalTokens
  const accounts = createAccounts({
    ...base,
    stored,
    tickets,
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
    countTokens,
    notices,
    acceptance,
    counter,
    onMailFailed: countFailed('mail', onMailFailed),
    mailOutage: outages.of('mail'),
    getLanguages
  }, { signUp: false, selfDelete: false, accountPath: DEFAULT_ACCOUNT_PATH, ...options.accounts })
  const { outbox, retryMail } = accounts
  const heldFactors = createHeldFactors({
    ...base, ways, users, people: users.people, notices, removeFactor: factors.removeFactor, openFactors: factors.open, issueEnrolLink: accounts.issueEnrolLink
  })
  const heldIdentities = createHeldIdentities({
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
  })
  const heldMails = createHeldMails({ store, people: users.people, listSent: feed.listSentMails })
  const webhooks = createWebhooks({ ...base, feed, outbound, outages, onWarning, onGivenUp: () => meter?.gaveUp('webhook') })
  // Each may wait some seconds for its deliveries in flight.
  closers.defer(async () => { await Promise.all([webhooks.close(), outbox && outbox.close()]) })
  const tokenSessions = createTokenSessions({
    ...base, tokens, changes, listStanding: async (user, proofs) => listStanding(proofs, await ways.withExisting(user), policy)
  })
  const ownSessions = createOwnSessions({ ...base, tokens, authorizations })
  const userSessions = createUserSessions({ people: users.people, ownSessions, tokenSessions })
  // With no upstream, nothing of them is loaded.
  const upstreams = configured.length === 0
    ? undefined
    : (await import('./upstreams/index.ts')).openUpstreams({
        ...base,
        identityEnds: createIdentityEnds({ store, tokens }),
        outbound,
        upstreams: configured,
        policy,
        stored,
        ways,
        accounts,
        failures,
        findOnly: policy.findOnly,
        // Also while they are off: they would work again once they are on.
        endPersonalTokens: async (user_id: string) => await named.endAll(toUserHolder(user_id)),
        names,
        signUp,
        signUpDomains,
        outages,
        onDown: () => meter?.signIn('error', 'upstream')
      })
  const standing = upstreams && upstreams.standing
  later.standing = standing
  const { enrolments, signIns, maySignIn } = openSignIns({
    ...base, failures, users, ways, factors, passkeys, policy, isOver: standing && standing.isOver, directory: findDataDir(options) ?? 'data', onWarning
  })
  const imports = createImports({
    ...base,
    seedKey,
    stored,
    cost: options.bcryptCost,
    canAddFactors: ways.canAddFactors,
    decoys,
    formerImports,
    countRest: relaysEvents ? passwords.countRest : async () => await isRelayed(opened, now) ? undefined : Infinity,
    invite: accounts.inviteImported,
    findUpstream: policy.findUpstream,
    isAuthority: createAuthorityCheck(configured),
    hasWayIn: ways.hasWayIn
  })
  const userLines = createUserLines({ ...base, ways })
  const ownData = createOwnData({ ...base, ways, ownSessions, uses, counter })
  const acrs = ACRS.filter((acr) => acr !== 'phr' || found.party !== undefined)
  const oidc = createOidc({ ...base, tokens, maySignIn, acrs, addresses, uses, counter, onGrant: meter?.tokens, documents, standing, logos })
  const answers = createAnswers({
    ...base,
    ways,
    policy,
    attempts,
    limits,
    canAskFormer,
    isOver: standing && standing.isOver,
    listOpen: signIns.listOpen,
    tickets,
    events: feed,
    mails: heldMails,
    people: users.people,
    gates: { unlockUser: users.people.checkMayHelp, recoverUser: accounts.checkMayRecover },
    sendsMail: outbox !== undefined,
    getIssuer: () => options.accounts?.getIssuer?.()
  })
  const consoleSessions = options.console
    ? (await import('./console-sessions/console-sessions.ts')).createConsole({ ...base, tokens, maySignIn, isRestricted: ways.isRestricted })
    : undefined
  const sealing = createSealing(base)

  const relay = openRelay({
    ...base,
    record,
    days,
    handlers: {
      ...logouts.handlers,
      async 'user.deleted' (event) {
        await logouts.handlers['user.deleted']?.(event)
        await serviceTokens.removeOfOwner(event)
        if (event.user !== undefined) await uses.forget(toUserHolder(event.user))
      }
    },
    acceptMails: acceptance.accept,
    ends: { ...tokens.ends, ...(upstreams && { upstream_ends: upstreams.logouts.finish }) },
    onPublished: onEvents,
    onError: report('events')
  })
  closers.defer(relay.close)
  const work: Works = {
    ...(outbox && { mail: { ...outbox, retry: retryMail } }),
    logout: logouts,
    webhook: webhooks.work,
    secret: secretEnds.work,
    event: relay.work
  }
  const watching = watchWork(work, onWarning)
  closers.defer(watching.close)
  metrics?.measure({
    store: opened, now, database: isOwn ? options.database : undefined, outages, passwords, webhooks, secretEnds, watching, isResting
  }, metrics.meter)
  const chores = createChores({
    store: opened,
    ways,
    configured,
    roleChanges: upstreams && upstreams.roleChanges,
    warnOfForeign: options.passkeys === false ? undefined : warnOfForeign,
    support: roles.support,
    countTokens: personalTokens?.countAll,
    onWarning,
    onInfo,
    report
  })
  closers.defer(chores.close)

  const started = [
    ...(sendsMail ? [...(outbox ? [outbox] : []), mailMark, secretEnds] : []),
    ...(relaysEvents ? [relay, chores] : []),
    ...(deliversWebhooks ? [webhooks] : [])
  ]
  for (const room of started) await room.start()
  return {
    store,
    roles,
    events: relay.events,
    failures,
    limits,
    accounts,
    imports,
    users,
    ways,
    factors,
    enrolments,
    passkeys,
    ownFactors,
    heldIdentities,
    heldFactors,
    heldMails,
    clients,
    secretEnds,
    serviceTokens,
    ...(personalTokens && { personalTokens }),
    leaks,
    documents,
    tokens,
    resources,
    webhooks,
    ...(upstreams && { upstreams }),
    async * listWithoutWay () {
      for await (const batch of listWithoutWay(store, ways)) yield batch.map(showItemOf('expired,disabled'))
    },
    tokenSessions,
    ownSessions,
    userSessions,
    userLines,
    ownData,
    logouts,
    maySignIn,
    ...(consoleSessions && { console: consoleSessions }),
    answers,
    sentForms,
    work,
    get languages () { return getLanguages() },
    signIns: metrics === undefined ? signIns : metrics.watchSignIns(signIns, metrics.meter),
    knownBrowsers,
    oidc,
    sealing,
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
