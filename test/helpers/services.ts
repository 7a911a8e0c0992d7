import { SILENT_FAILURES, createSilentRecorder } from './events.ts'
import type { Test } from 'tap'
import { createClients } from '../../lib/clients/clients.ts'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import type { ClientRecord, TokenRecord, UserRecord } from '../../lib/records.ts'
import type { Registry } from '../../lib/resources/registry.ts'
import { createResources } from '../../lib/resources/resources.ts'
import { DEFAULT_ROLE_NAMES } from '../../lib/roles.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createTokens } from '../../lib/tokens/tokens.ts'
import type { Passwords } from '../../lib/users/passwords.ts'
import { createPasswordRules } from '../../lib/users/password-rules.ts'
import { createUsers } from '../../lib/users/users.ts'
import { createAttempts } from '../../lib/sign-in/attempts.ts'
import { type Around, wrapStore } from './wrap-store.ts'
import './plain-threads.ts'

export const BEGIN = '2126-11-21T02:51:00.000Z'

/** A hash is its strength and the password: `weak old`, `strong new`. */
const PLAIN_PASSWORDS: Passwords = {
  hash: async (password) => `strong ${password}`,
  verify: async (password, stored) => stored?.split(' ')[1] === password,
  isWeak: (stored) => stored.startsWith('weak'),
  countWaiting: () => 0,
  close: async () => {}
}

/** Users, clients and tokens on a store in memory, without hashing and without HTTP: a test of them takes milliseconds. */
export async function openRules (t: Test, { around = (_call, run) => run(), passwords, refreshTtl }: { around?: Around, passwords?: Partial<Passwords>, refreshTtl?: number } = {}) {
  let time = Date.parse(BEGIN)
  const now = () => time
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now, onError: () => {} })
  t.teardown(() => inner.close())
  const store = wrapStore(inner, around)
  const errors: unknown[] = []
  const onError = (error: unknown) => { errors.push(error) }
  const roles = DEFAULT_ROLE_NAMES
  const recorder = createSilentRecorder(store)
  const tokens = createTokens({ store, now, roles, recorder, onError, refreshTtl })
  const box = createSecretBox(generateSecretKey())
  const attempts = createAttempts({ store, now, key: box.key })
  const checkNewPassword = createPasswordRules({ min: 1 })
  return {
    store,
    now,
    users: createUsers({ store, now, roles, passwords: { ...PLAIN_PASSWORDS, ...passwords }, checkNewPassword, attempts, tokens, recorder, failures: SILENT_FAILURES, onError }),
    clients: createClients({ store, now, box, tokens, recorder, checkQuota: async () => {}, checkUrl: (url) => url }),
    tokens,
    resources: createResources({ store, now, recorder, onError, api: 'https://id.example/api/v1' }),
    /** The stored records, past `around`. */
    records: { users: inner.collection<UserRecord>('users'), clients: inner.collection<ClientRecord>('clients'), resources: inner.collection<Registry>('resources'), tokens: inner.collection<TokenRecord>('access_tokens') },
    /** What the services reported to the operator. */
    errors,
    advance: (milliseconds: number) => { time += milliseconds }
  }
}
