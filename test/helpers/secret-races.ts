import { findUsable } from '../../lib/clients/usable.ts'
import { createClients } from '../../lib/clients/clients.ts'
import { createToken } from '../../lib/crypto/random-token.ts'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import { type Presented, createClientAuthentication } from '../../lib/oidc/client-authentication.ts'
import { createTimes } from '../../lib/oidc/model-adapter.ts'
import { createUserRecord } from '../../lib/records/user.ts'
import { DEFAULT_ROLE_NAMES } from '../../lib/roles.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createCounter } from '../../lib/throttling/counter.ts'
import { createTokens } from '../../lib/tokens/tokens.ts'
import { assert, createTestKey } from './assertions.ts'
import { createSilentRecorder } from './events.ts'
import { type Choose, Scheduler } from './scheduler.ts'
import { wrapStore } from './wrap-store.ts'
import { createBase } from './base.ts'

const NOW = Date.UTC(2026, 10, 23)
const TIME = new Date(NOW).toISOString()
const ADMIN = { user_id: 'u1', isAdmin: true }

const ISSUER = 'https://id.example'

const [KEPT, REMOVED, OTHER] = [createTestKey('ES256', 'kept'), createTestKey('ES256', 'removed'), createTestKey('ES256', 'other')] as const

/** What a client has to authenticate: the readable secret, a named one, or a key. */
export type Credential = 'first' | 'named' | 'key'

/** What somebody does with the client while its secret or key is removed. */
type Other = 'adds another' | 'renames the client' | 'removes it too'

export interface RaceOutcome { survivors: number, got: number, order: string }

/** A secret or a key, and how a request presents it. */
interface Raced { present (): Promise<Presented>, remove (): Promise<void> }

/** Races requests that a secret or a key authenticates with its removal, one store call at a time. */
export async function openSecretRaces () {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: () => NOW })
  const scheduler = new Scheduler()
  const store = wrapStore(inner, scheduler.around)
  const recorder = createSilentRecorder(store)
  const box = createSecretBox(generateSecretKey())
  const now = () => NOW
  const tokens = createTokens({ store, now, roles: DEFAULT_ROLE_NAMES, recorder, report: () => () => {} })
  const uses = { read: async () => ({}), forget: async () => {}, note: () => {} }
  const clients = createClients({ ...createBase({ store, now, box, recorder }), tokens, checkQuota: async () => {}, uses, ends: { add: async () => {}, forget: async () => {} }, checkUrl: (url) => url })
  const authentication = createClientAuthentication({ store, box, now, times: createTimes(now), uses, counter: createCounter(now) })
  await inner.collection('users').insert(createUserRecord(NOW, { id: 'u1', account: 'ann', roles: {}, name: '', info: {} }))

  /** As the token endpoint: reads the client, authenticates it, and issues a token. */
  async function getToken (client_id: string, { present }: Raced, told: string[]): Promise<void> {
    const presented = await present()
    const record = await findUsable(store, client_id, TIME)
    const verdict = record === null ? null : await authentication.verify(record, presented, { issuer: ISSUER, address: '192.0.2.1' })
    if (verdict === null) return
    const token = createToken()
    await tokens.issue({ token, ttl: 3600, fields: { scopes: [], ...verdict } }, { user_id: 'u1', client_id, user_epoch: 0, client_epoch: record!.epoch })
    told.push(token)
    await tokens.authenticate(token)
  }

  async function isAlive (token: string): Promise<boolean> {
    try {
      await tokens.authenticate(token)
      return true
    } catch {
      return false
    }
  }

  async function addSecret (clientId: string, name: string): Promise<Raced> {
    const { id, secret } = await clients.addSecret(clientId, { data: { name } }, ADMIN)
    return { present: async () => ({ method: 'secret', secret }), remove: async () => await clients.removeSecret(clientId, id, ADMIN) }
  }

  async function addKey (clientId: string, key: typeof KEPT): Promise<Raced> {
    const [added] = await clients.addKeys(clientId, { keys: [key.jwk] }, ADMIN)
    return {
      present: async () => ({ method: 'private_key_jwt', assertion: await assert(clientId, ISSUER, key, {}, { kid: key.jwk.kid ?? '' }) }),
      remove: async () => await clients.removeKey(clientId, added!.id, ADMIN)
    }
  }

  async function findFirst (clientId: string): Promise<Raced> {
    const { clientSecret: secret = '' } = await clients.require(clientId, ADMIN)
    return { present: async () => ({ method: 'secret', secret }), remove: async () => await clients.removeSecret(clientId, 'first', ADMIN) }
  }

  /** A client with two of a kind: one that stays, and one that is removed. */
  async function create (which: Credential): Promise<{ clientId: string, kept: Raced, removed: Raced }> {
    const { clientId } = await clients.create({ data: { redirectUris: [], scopes: [], name: 'n' }, credentials: true }, ADMIN)
    if (which !== 'key') return { clientId, kept: await addSecret(clientId, 'kept'), removed: which === 'first' ? await findFirst(clientId) : await addSecret(clientId, 'removed') }
    const [kept, removed] = [await addKey(clientId, KEPT), await addKey(clientId, REMOVED)]
    await clients.patch(clientId, { data: { tokenAuth: 'private_key_jwt' } }, ADMIN)
    return { clientId, kept, removed }
  }

  async function play (which: Credential, racers: number, other: Other | undefined, choose: Choose): Promise<RaceOutcome> {
    const { clientId, kept, removed } = await create(which)
    // Signatures are made outside of the loop's turns.
    scheduler.waitsForAll = which === 'key'
    const [told, others]: [string[], string[]] = [[], []]
    const acts: Record<Other, () => Promise<unknown>> = {
      'adds another': async () => await (which === 'key' ? addKey(clientId, OTHER) : addSecret(clientId, 'x')),
      'renames the client': async () => await clients.patch(clientId, { data: { name: 'm' } }, ADMIN),
      'removes it too': async () => await (which === 'key' ? clients.patch(clientId, { data: { jwks: { keys: [KEPT.jwk] } } }, ADMIN) : removed.remove())
    }
    await scheduler.run({
      remover: removed.remove,
      keeper: async () => await getToken(clientId, kept, others),
      ...(other !== undefined && { other: acts[other] }),
      ...Object.fromEntries(Array.from({ length: racers }, (_, index) => [`racer ${index}`, async () => await getToken(clientId, removed, told)]))
    }, choose)
    const order = scheduler.order.join('\n')
    let survivors = 0
    for (const token of told) if (await isAlive(token)) survivors++
    await getToken(clientId, removed, told).then(() => {}, () => {})
    for (const token of told) if (await isAlive(token)) survivors++
    // The requests of the other one never fail.
    if (others.length !== 1 || !await isAlive(others[0]!)) throw new Error('a request of the other one failed')
    return { survivors, got: told.length, order }
  }

  return { scheduler, play, close: async () => await inner.close() }
}
