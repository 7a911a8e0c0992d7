import type { Options } from '../schemas/options.ts'
import type { BackgroundWork } from './base.ts'
import type { BootstrapOptions, Bootstrapped } from './bootstrap.ts'
import type { Answers } from './answers/index.ts'
import type { AccountOptions, Accounts } from './accounts/index.ts'
import type { Event } from '../schemas/event.ts'
import type { DocumentHosts, LazyDocuments, RefusedDocument } from './client-documents/index.ts'
import type { UserItem } from '../schemas/user.ts'
import type { Events } from './events/index.ts'
import type { Failures } from './events/failures.ts'
import type { Origin } from './events/origin.ts'
import type { Leaks } from './clients/leaks.ts'
import type { SecretEnds } from './clients/secret-ends.ts'
import type { ServiceTokens } from './clients/service-tokens.ts'
import type { Clients } from './clients/clients.ts'
import type { Clock } from './clock.ts'
import type { Console } from './console-sessions/console-sessions.ts'
import type { Imports } from './import/index.ts'
import type { Logouts } from './logout/logouts.ts'
import type { OwnData } from './export/own-data.ts'
import type { UserLines } from './export/user-lines.ts'
import type { Oidc } from './oidc/index.ts'
import type { Languages } from './pages/texts/language.ts'
import type { Meter } from './metrics/meter.ts'
import type { Outbound } from './outbound/fetcher.ts'
import type { Resources } from './resources/resources.ts'
import type { RoleNames } from './roles.ts'
import type { Sealing } from './maintenance/reseal.ts'
import type { AccountLimits } from './throttling/account-limits.ts'
import type { Counter } from './throttling/counter.ts'
import type { OwnSessions } from './sessions/own-sessions.ts'
import type { TokenSessions } from './sessions/token-sessions.ts'
import type { UserSessions } from './sessions/user-sessions.ts'
import type { SignIns } from './sign-in/sign-ins.ts'
import type { EnrolActor } from './sign-in/steps/enrol.ts'
import type { KnownBrowsers } from './throttling/known-browsers.ts'
import type { SentForms } from './sent-forms/sent-forms.ts'
import type { Store } from './store/port.ts'
import type { Tokens } from './tokens/tokens.ts'
import type { Users } from './users/users.ts'
import type { MaySignIn } from './sign-in/may-sign-in.ts'
import type { Enrolments } from './ways/enrolments.ts'
import type { Passkeys } from './ways/passkeys.ts'
import type { FactorChanges } from './ways/factor-changes.ts'
import type { Factors } from './ways/factors.ts'
import type { HeldMails } from './accounts/held-mails.ts'
import type { HeldFactors } from './accounts/held-factors.ts'
import type { OwnFactorService } from './ways/own-factors.ts'
import type { HeldIdentities } from './accounts/held-identities.ts'
import type { Migrate } from './lazy-migration/index.ts'
import type { PersonalTokenService } from './personal-tokens/index.ts'
import type { UpstreamService } from './upstreams/index.ts'
import type { WayService } from './ways/ways.ts'
import type { Webhooks } from './webhooks/webhooks.ts'
import type { Ended, OutageOf } from './work/outage.ts'
import type { Works } from './work/watch.ts'

/** The options of the services; `schemas/options.ts` describes those that are plain data. */
export interface ServiceOptions extends Pick<
  Options,
  'database' | 'storeTimeout' | 'secretKey' | 'dataDir' | 'production' | 'createDatabase' | 'bcryptCost' | 'hashQueue' | 'passwordMin' | 'roles' | 'managerRoles' | 'clientsPerUser' | 'auditDays' | 'addresses'
> {
  outboundHosts?: Options['outboundHosts'] | undefined
  personalTokens?: Options['personalTokens'] | undefined
  /** The console. Absent: there is none. */
  console?: Options['console'] | undefined
  /** Hosts whose documents describe clients that nobody has registered. Absent: there are no such clients. */
  documentHosts?: DocumentHosts | undefined
  /** Replaces how answers of other hosts are read, for tests. */
  readOutbound?: ((read: Outbound['read']) => Outbound['read']) | undefined
  /** Receives refused documents, for the log. */
  onRefusedDocument?: ((refused: RefusedDocument) => void) | undefined
  /** Other providers that people sign in with. Absent: none. */
  upstreams?: Options['upstreams'] | undefined
  /** The former system that people move from. Absent: none. */
  migrate?: Migrate | undefined
  /** Who needs a second factor. Absent: those who have one. */
  factors?: Options['factors'] | undefined
  /** Absent: passkeys are on. */
  passkeys?: boolean | undefined
  /** The relying party of passkeys. Absent: the issuer's host. */
  relyingParty?: string | undefined
  walLimit?: Options['walLimit'] | undefined
  /** Resources that the host declares. Absent: the ones of earlier starts stay declared. */
  resources?: Options['resources'] | undefined
  /** The issuer, if known. No declared resource may have the URI of the service's own API, which is derived from it. */
  issuer?: string | undefined
  /** The name of the service, if it has one. It is refused as a password. */
  serviceName?: string | undefined
  /** An open store, which `close` leaves open. Absent: one is opened from `database`, and closed with the services. */
  store?: Store | undefined
  /** Checks whether the services can be opened with these keys, without storing anything about the keys or the resources. */
  dryRun?: boolean | undefined
  /** False: the database of an earlier release is not migrated, but refused. Absent: it is migrated, unless this is a dry run. */
  migrates?: boolean | undefined
  /** Milliseconds since the epoch. */
  now?: Clock | undefined
  /** Processes on this machine, including this one. Each uses an equal share of the cores for hashing. */
  processes?: number | undefined
  /** Lifetime of minted refresh tokens in seconds. Absent: none are minted, because no authorization server redeems them. */
  refreshTtl?: number | undefined
  /** People's accounts: mail, sign-up, links. Absent: no mail, no sign-up. */
  accounts?: Partial<AccountOptions> | undefined
  /** The languages of pages and mails. Absent: the built-in ones. */
  getLanguages?: (() => Languages) | undefined
  /** Counts attempts and requested mails. Absent: requested mails are counted in memory, and attempts by other processes. */
  counter?: Counter | undefined
  /** Sends all due mails until `close`, whichever process accepted them. Absent: only mails that this process accepts. */
  sendsMail?: boolean | undefined
  /** Publishes events until `close`, whichever process recorded them. Absent: other processes do, or `events.flush`. */
  relaysEvents?: boolean | undefined
  /** Delivers events to webhooks until `close`. Absent: only when `webhooks.flush` is called. */
  deliversWebhooks?: boolean | undefined
  /** The origin of actions outside of requests. Absent: `system`. */
  via?: Origin['via'] | undefined
  /** Receives the events that this process publishes, for the log. */
  onEvents?: ((events: Event[]) => void) | undefined
  /** Receives mails that failed for good. */
  onMailFailed?: ((delivery: { id: string, kind: string, attempts: number, failure: string }) => void) | undefined
  /** Receives logout tokens whose delivery failed for good. */
  onLogoutFailed?: ((delivery: { id: string, client_id: string, user_id: string, attempts: number, failure: string }) => void) | undefined
  /** Receives the begin and the end of an outage of a server that the service calls. */
  onOutage?: ((of: OutageOf, change: { error: unknown } | Ended, name: string | undefined) => void) | undefined
  /** Collects metrics. Absent: nothing is measured, at no cost. */
  meter?: Meter | undefined
  /** Receives failures that no caller waits for, with the name of the work that failed. */
  onError?: ((error: unknown, work: BackgroundWork) => void) | undefined
  /** Receives warnings for the operator, such as that a new database was created. */
  onWarning?: ((message: string) => void) | undefined
  /** Receives what the operator may want to know, such as how many users hold the role of support staff. */
  onInfo?: ((message: string) => void) | undefined
}

/** The services over one store. A program can do everything through them that the HTTP routes do. */
export interface Services {
  readonly store: Store
  readonly roles: RoleNames
  /** Events: the feed, lists, and listeners of this process. */
  readonly events: Events
  /** Records failures and refusals. */
  readonly failures: Pick<Failures, 'recordRefusal' | 'flush'>
  /** The limits a minute for attempts at an account. */
  readonly limits: AccountLimits
  readonly users: Users
  /** The ways in which users prove who they are, beside the password. */
  readonly ways: WayService
  /** Authenticator apps and recovery codes. */
  readonly factors: Factors & FactorChanges
  /** Adds factors, page by page. */
  readonly enrolments: Enrolments<EnrolActor>
  /** Passkeys: how they are added, and what they prove. */
  readonly passkeys: Passkeys
  /** Lists and removes the second factors that users have. */
  readonly heldFactors: HeldFactors
  /** A user's second factors, for the account pages. */
  readonly ownFactors: OwnFactorService
  /** Lists the mails to users. */
  readonly heldMails: HeldMails
  /** Lists and unlinks the identities at other providers that users have. */
  readonly heldIdentities: HeldIdentities
  readonly clients: Clients
  /** Long-lived tokens of clients that act for themselves. */
  readonly serviceTokens: ServiceTokens
  /** Tokens that people make for their programs. Absent: off. */
  readonly personalTokens?: PersonalTokenService | undefined
  /** Ends tokens and secrets that were found in the wrong place. */
  readonly leaks: Leaks
  /** Tells the owners of clients before secrets expire, and counts those that do soon. */
  readonly secretEnds: Pick<SecretEnds, 'flush' | 'count'>
  /** Clients from documents. Absent: off. */
  readonly documents?: LazyDocuments | undefined
  readonly tokens: Tokens
  /** Declared resources, which define the scopes of other APIs. */
  readonly resources: Resources
  /** Webhooks: receivers of events, by type. */
  readonly webhooks: Webhooks
  /** Account self-service (recovery, sign-up, addresses, deletion), and invitation and recovery of other users. */
  readonly accounts: Accounts
  /** Moves people in from another system. */
  readonly imports: Imports
  /** Sign-in with other providers. Absent without any. */
  readonly upstreams?: UpstreamService
  /** The users without any way to sign in, in batches. */
  listWithoutWay (): AsyncGenerator<UserItem[]>
  /** Lists and ends a user's token sessions. */
  readonly tokenSessions: TokenSessions
  /** A user's browsers, token sessions and connected apps, for the account pages. */
  readonly ownSessions: OwnSessions
  /** Lists and ends the sessions of somebody else. */
  readonly userSessions: UserSessions
  /** Writes users for another service, for the command line. */
  readonly userLines: UserLines
  /** Writes a person's own data. */
  readonly ownData: OwnData
  /** Notifies clients that a sign-in has ended (OpenID Connect Back-Channel Logout). */
  readonly logouts: Logouts
  /** What the service does later, by kind, for the command line. */
  readonly work: Works
  /** The languages of pages and mails. */
  readonly languages: Languages
  /** Judges everything that makes a session, a code or a token of what a person has proved. */
  readonly maySignIn: MaySignIn
  /** Who is signed in to the console. Absent: there is none. */
  readonly console?: Console | undefined
  /** Answers for operators: why somebody cannot sign in, and what a token would say. */
  readonly answers: Answers
  /** Signs users in step by step, for the pages. */
  readonly signIns: SignIns
  /** Makes a form of a page that is sent twice act once. */
  readonly sentForms: SentForms
  /** The cookies of browsers in which a user has signed in. */
  readonly knownBrowsers: KnownBrowsers
  /** The authorization server; `oidc.rotateKeys()` is for the command line. */
  readonly oidc: Oidc
  /** Inspects stored secrets and seals them again under a new key, for the command line. */
  readonly sealing: Sealing
  /** Creates the first admin (lib/bootstrap.ts). */
  bootstrap (options?: BootstrapOptions): Promise<Bootstrapped>
  /** Finishes accepted work, then closes everything that openServices opened. */
  close (): Promise<void>
}
