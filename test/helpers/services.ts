import { type AccountOptions, type AccountParts, createAccounts } from '../../lib/accounts/index.ts'
import { ENDED_BY_DELETION, createTickets } from '../../lib/accounts/tickets.ts'
import { createSecretUses } from '../../lib/clients/secret-uses.ts'
import { createAcceptance } from '../../lib/mail/acceptance.ts'
import { createCredentials } from '../../lib/ways/credentials.ts'
import { createEvidenceCheck } from '../../lib/ways/evidence.ts'
import { createWays } from '../../lib/ways/ways.ts'
import { SILENT_FAILURES, createSilentRecorder, createTestRecorder, createWatchedRecorder } from './events.ts'
import { createRelay } from '../../lib/events/relay.ts'
import type { Happening } from '../../lib/events/types.ts'
import type { Logouts } from '../../lib/logout/logouts.ts'
import type { Test } from 'tap'
import { type ClientServices, createClients } from '../../lib/clients/clients.ts'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import type { ClientRecord, TokenRecord, UserRecord } from '../../lib/records.ts'
import type { Registry } from '../../lib/resources/registry.ts'
import { createResources } from '../../lib/resources/resources.ts'
import { DEFAULT_ROLE_NAMES } from '../../lib/roles.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createOwnSessions } from '../../lib/tokens/own-sessions.ts'
import { createTokenSessions } from '../../lib/tokens/token-sessions.ts'
import { createAuthorizations } from '../../lib/oidc/authorizations.ts'
import { createTokens } from '../../lib/tokens/tokens.ts'
import type { Passwords } from '../../lib/users/passwords.ts'
import { createPasswordRules } from '../../lib/users/password-rules.ts'
import { createStoredUsers } from '../../lib/users/stored-users.ts'
import { type UserServices, createUsers } from '../../lib/users/users.ts'
import { createAttempts } from '../../lib/throttling/attempts.ts'
import { createTestNotices } from './mails.ts'
import { type Around, wrapStore } from './wrap-store.ts'
import './plain-threads.ts'

export const BEGIN = '2126-11-21T02:51:00.000Z'

/** A fake hash consists of its strength and the password: `weak old`, `strong new`. */
export const PLAIN_PASSWORDS: Passwords = {
  hash: async (password) => `strong ${password}`,
  verify: async (password, stored) => stored?.split(' ')[1] === password,
  isWeak: (stored) => stored.startsWith('weak'),
  countWaiting: () => 0,
  countRest: () => Infinity,
  close: async () => {}
}

/** Throws for `refused:`. */
function checkUrl (url: string): string {
  if (url === 'refused:') throw new Error('is refused')
  return url
}

/** Users, clients and tokens on a store in memory, without hashing and without HTTP: a test of them takes milliseconds. */
export async function openRules (t: Test, { around = (_call, run) => run(), passwords, refreshTtl, record, logouts, failures = SILENT_FAILURES, checkQuota = async () => {}, passwordMin = 1 }: {
  around?: Around
  passwords?: Partial<Passwords>
  refreshTtl?: number
  passwordMin?: number
  /** Receives the events that the services record. */
  record?: (happening: Happening) => void
  logouts?: Pick<Logouts, 'enqueueForSession' | 'enqueueForUser'>
} & Partial<Pick<UserServices, 'failures'> & Pick<ClientServices, 'checkQuota'>> = {}) {
  let time = Date.parse(BEGIN)
  const now = () => time
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now, onError: () => {} })
  t.teardown(() => inner.close())
  const store = wrapStore(inner, around)
  const errors: unknown[] = []
  const onError = (error: unknown) => { errors.push(error) }
  const roles = DEFAULT_ROLE_NAMES
  const recorder = record === undefined ? createSilentRecorder(store) : createWatchedRecorder(store, record)
  const tokens = createTokens({ store, now, roles, recorder, onError, refreshTtl, logouts })
  const box = createSecretBox(generateSecretKey())
  const relay = createRelay({ store: inner, now, days: 400, acceptMails: createAcceptance({ store: inner, now, box }).accept, onPublished: () => {}, onError })
  t.teardown(() => relay.close())
  const attempts = createAttempts({ store, now, key: box.key })
  const checkNewPassword = createPasswordRules({ min: passwordMin })
  const tickets = createTickets({ store, now })
  const material = createCredentials({ store, now })
  const onRemove = async (id: string) => await Promise.all([tickets.removeOf(id, ENDED_BY_DELETION), material.removeOf(id)])
  const stored = createStoredUsers({ store, now, role: roles.admin, recorder, tokens, onRemove, onError })
  const clients = createClients({ store, now, box, tokens, recorder, checkQuota, uses: createSecretUses({ store, now, onError: (error) => { throw error } }), ends: { add: async () => {}, forget: async () => {} }, checkUrl })
  return {
    store,
    now,
    stored,
    users: createUsers({ store, stored, now, roles, passwords: { ...PLAIN_PASSWORDS, ...passwords }, checkNewPassword, attempts, recorder, failures, checkEvidence: createEvidenceCheck({ ways: createWays({ store, now, recorder, tokens, onError }) }), onError, notices: createTestNotices(now), removeLinks: async (id) => await tickets.removeOf(id, ['verify']) }),
    clients,
    tokens,
    tokenSessions: createTokenSessions({ store, now, tokens, recorder }),
    ownSessions: createOwnSessions({ store, now, tokens, recorder, authorizations: createAuthorizations(store) }),
    tickets,
    /** Publishes, past `around`. */
    events: { flush: relay.flush },
    /** Operations on accounts, with events, and without mail unless an option has it. `parts` replace others. */
    openAccounts (options: Partial<AccountOptions> = {}, parts: Partial<AccountParts> = {}) {
      const own = { store, now, recorder: createTestRecorder(store, now), onError: (error: unknown) => { t.fail(String(error)) }, ...parts }
      return createAccounts({
        stored: createStoredUsers({ ...own, role: roles.admin, tokens, onRemove }),
        roles,
        passwords: PLAIN_PASSWORDS,
        clients,
        box,
        checkNewPassword: async (password) => password,
        openPassword: async () => {},
        ways: createWays({ ...own, tokens }),
        notices: createTestNotices(now, options.mail !== undefined),
        counter: { count: async () => ({ current: 1, ttl: 1 }) },
        onMailFailed: () => {},
        ...own
      }, { signUp: true, selfDelete: true, accountPath: '/account', getIssuer: () => new URL('https://id.example'), ...options })
    },
    resources: createResources({ store, now, recorder, onError, api: 'https://id.example/api/v1' }),
    /** The stored records, past `around`. */
    records: { users: inner.collection<UserRecord>('users'), clients: inner.collection<ClientRecord>('clients'), resources: inner.collection<Registry>('resources'), tokens: inner.collection<TokenRecord>('access_tokens') },
    /** The errors that the services reported to the operator. */
    errors,
    advance: (milliseconds: number) => { time += milliseconds }
  }
}
