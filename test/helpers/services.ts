import { type AccountOptions, type AccountParts, createAccounts } from '../../lib/accounts/index.ts'
import { ENDED_BY_DELETION, createTickets } from '../../lib/tickets/tickets.ts'
import { createUses } from '../../lib/tokens/uses.ts'
import { createAcceptance } from '../../lib/mail/acceptance.ts'
import { createCredentials } from '../../lib/ways/credentials.ts'
import { createFactorChanges } from '../../lib/ways/factor-changes.ts'
import { createUndos } from '../../lib/user-changes/undos.ts'
import { createEvidenceCheck } from '../../lib/ways/evidence.ts'
import { createBase } from './base.ts'
import { SILENT_FAILURES, createSilentRecorder, createTestRecorder, createWatchedRecorder } from './events.ts'
import { createRelay } from '../../lib/events/relay.ts'
import type { Happening } from '../../lib/events/types.ts'
import type { Logouts } from '../../lib/logout/logouts.ts'
import type { Test } from 'tap'
import { type ClientServices, createClients } from '../../lib/clients/clients.ts'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import type { ClientRecord } from '../../lib/records/client.ts'
import type { TokenRecord } from '../../lib/records/token.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Registry } from '../../lib/resources/registry.ts'
import { createResources } from '../../lib/resources/resources.ts'
import { DEFAULT_ROLE_NAMES } from '../../lib/roles.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createOwnSessions } from '../../lib/sessions/own-sessions.ts'
import { createTokenSessions } from '../../lib/sessions/token-sessions.ts'
import { createAuthorizations } from '../../lib/oidc/authorizations.ts'
import { createTokens } from '../../lib/tokens/tokens.ts'
import type { Passwords } from '../../lib/users/passwords.ts'
import { createPasswordRules } from '../../lib/users/password-rules.ts'
import { type UserServices, createUsers } from '../../lib/users/users.ts'
import { createAttempts } from '../../lib/throttling/attempts.ts'
import { createTestNotices } from './mails.ts'
import { type Around, wrapStore } from './wrap-store.ts'
import { openTestChanges, openTestStored, openTestWays } from './user-changes.ts'
import './plain-threads.ts'

export const BEGIN = '2126-11-21T02:51:00.000Z'

/** A fake hash consists of its strength and the password: `weak old`, `strong new`. */
export const PLAIN_PASSWORDS: Passwords = {
  hash: async (password) => `strong ${password}`,
  verify: async (password, stored) => stored?.split(' ')[1] === password,
  codeCost: 4,
  stretch: async (codes, { salt }) => codes.map((code) => `${salt} ${code}`),
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
  const tokens = createTokens({ store, now, roles, recorder, report: () => onError, refreshTtl, logouts })
  const box = createSecretBox(generateSecretKey())
  const relay = createRelay({ store: inner, now, days: 400, acceptMails: createAcceptance({ store: inner, now, box }).accept, onPublished: () => {}, onError })
  t.teardown(() => relay.close())
  const attempts = createAttempts({ store, now, key: box.key })
  const checkNewPassword = createPasswordRules({ min: passwordMin })
  const tickets = createTickets({ store, now })
  const material = createCredentials({ store, now })
  const onRemove = async (id: string) => await Promise.all([tickets.removeOf(id, ENDED_BY_DELETION), material.removeOf(id)])
  const stored = openTestStored({ store, now, role: roles.admin, recorder, tokens, onRemove, onError })
  const base = createBase({ store, now, box, recorder, roles, onError })
  const clients = createClients({
    ...base, tokens, checkQuota, uses: createUses(createBase({ store, now })), ends: { add: async () => {}, forget: async () => {} }, checkUrl
  })
  return {
    store,
    now,
    stored,
    users: createUsers({
      ...createBase({ store, now, box, recorder, roles, onError }),
      stored,
      passwords: { ...PLAIN_PASSWORDS, ...passwords },
      checkNewPassword,
      attempts,
      failures,
      checkEvidence: createEvidenceCheck({ ways: openTestWays({ store, now, recorder, tokens, onError }) }),
      limits: { open: async () => ({}) },
      notices: createTestNotices(now),
      removeLinks: async (id) => await tickets.removeOf(id, ['verify'])
    }),
    clients,
    tokens,
    tokenSessions: createTokenSessions({ store, now, tokens, changes: openTestChanges({ store, now, tokens, recorder, onError }) }),
    ownSessions: createOwnSessions({ store, now, tokens, recorder, authorizations: createAuthorizations(store) }),
    tickets,
    /** Publishes, past `around`. */
    events: { flush: relay.flush },
    /** Operations on accounts, with events, and without mail unless an option has it. `parts` replace others. */
    openAccounts (options: Partial<AccountOptions> = {}, parts: Partial<AccountParts> = {}) {
      const own = { store, now, recorder: createTestRecorder(store, now), report: () => (error: unknown) => { t.fail(String(error)) }, ...parts }
      const onError = own.report('mail')
      const ownStored = openTestStored({ ...own, role: roles.admin, tokens, onRemove, onError })
      const ways = parts.ways ?? openTestWays({ ...own, tokens, onError })
      const notices = parts.notices ?? createTestNotices(now, options.mail !== undefined)
      const changes = createFactorChanges({ ways, changes: parts.stored ?? ownStored, tickets, notices, undos: createUndos({ notices, now }), undoHours: options.undoFactors, onError })
      const accounts = createAccounts({
        stored: ownStored,
        tickets,
        roles,
        passwords: PLAIN_PASSWORDS,
        clients,
        box,
        checkNewPassword: async (password) => password,
        openPassword: async () => {},
        ways,
        notices,
        counter: { count: async () => ({ current: 1, ttl: 1 }) },
        onMailFailed: () => {},
        ...own
      }, { signUp: true, selfDelete: true, accountPath: '/account', getIssuer: () => new URL('https://id.example'), ...options })
      return { ...accounts, ...changes }
    },
    resources: createResources({ ...base, api: 'https://id.example/api/v1' }),
    /** The stored records, past `around`. */
    records: { users: inner.collection<UserRecord>('users'), clients: inner.collection<ClientRecord>('clients'), resources: inner.collection<Registry>('resources'), tokens: inner.collection<TokenRecord>('access_tokens') },
    /** The errors that the services reported to the operator. */
    errors,
    advance: (milliseconds: number) => { time += milliseconds }
  }
}
