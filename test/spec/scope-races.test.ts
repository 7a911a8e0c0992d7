import t, { type Test } from 'tap'
import { createClients } from '../../lib/clients/clients.ts'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import { type ClientRecord, type TokenRecord, type UserRecord, createClientRecord, createUserRecord } from '../../lib/records.ts'
import { EMPTY_REGISTRY, REGISTRY_ID, type Registry, findByUri, listUsableScopes, narrowScopes } from '../../lib/resources/registry.ts'
import { createResources } from '../../lib/resources/resources.ts'
import { DEFAULT_ROLE_NAMES } from '../../lib/roles.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { Caller } from '../../lib/tokens/caller.ts'
import { ACCESS_TTL, createToken, createTokens } from '../../lib/tokens/tokens.ts'
import { rotate } from '../helpers/redeem.ts'
import { type Choose, Scheduler, createRandom, exhaust } from '../helpers/scheduler.ts'
import { wrapStore } from '../helpers/wrap-store.ts'

// Once a change of what a client may do is acknowledged, no token shows a scope or opens anything that it must not, whatever
// was read, issued or refreshed meanwhile.

/** Interleavings at least, on the store in memory. */
const LEAST = 10_000
/** Orders of each change with one racer at most. */
const MOST_ORDERS = 170
/** Random orders of each change with many racers; on a file, where documents are cached. */
const RANDOM_ORDERS = 400
const RANDOM_ORDERS_ON_FILE = 8

t.setTimeout(180_000)

const NOW = Date.UTC(2026, 10, 21, 2, 51)
const ADMIN = { user_id: 'admin', isAdmin: true }
const ORDERS = 'https://orders.example/'

async function open (database: string) {
  const now = () => NOW
  const inner = await openStore(database, { collections: COLLECTIONS, now })
  const scheduler = new Scheduler()
  const store = wrapStore(inner, scheduler.around)
  const tokens = createTokens({ store, now, roles: DEFAULT_ROLE_NAMES, onError: () => {}, refreshTtl: 7200 })
  return {
    inner,
    store,
    scheduler,
    tokens,
    clients: createClients({ store, now, box: createSecretBox(generateSecretKey()), tokens, checkQuota: async () => {} }),
    resources: createResources({ store, now })
  }
}

type World = Awaited<ReturnType<typeof open>>

/** A client with a free scope `pay`, a scope of the API and a declared scope, and the tokens that it has. */
interface Scene {
  user_id: string
  client_id: string
  resourceId: string
  /** Every access token of the client that somebody was told. */
  told: string[]
  refresh_tokens: string[]
  /** Whether the change was acknowledged. */
  acknowledged: boolean
  /** What tokens showed that were looked up after that. */
  seen: string[]
}

const CARRIED = ['account:read', 'free', 'orders:read', 'pay']
let scenes = 0

/** Written to the store directly, since each order has a new one. */
async function setScene ({ tokens, inner }: World, hasSessions: boolean): Promise<Scene> {
  const number = scenes++
  const [user_id, client_id, resourceId] = [`user${number}`, `client${number}`, 'orders']
  const entry = { uri: ORDERS, name: 'Orders', scopes: { 'orders:read': 'read orders' }, self_service: ['orders:read'], created_at: '', modified_at: '' }
  await inner.collection<Registry>('resources').put({ id: REGISTRY_ID, revision: number, resources: { [resourceId]: entry }, names: { 'orders:read': resourceId } })
  await inner.collection<UserRecord>('users').insert(createUserRecord(NOW, { id: user_id, account: user_id, roles: {}, password: '', name: '', info: {} }))
  await inner.collection<ClientRecord>('clients').insert(createClientRecord(NOW, {
    id: client_id, redirectUris: [], scopes: CARRIED, declared: { 'orders:read': resourceId }, userId: user_id, name: 'n', revision: 0
  }))
  const scene: Scene = { user_id, client_id, resourceId, told: [], refresh_tokens: [], acknowledged: false, seen: [] }
  const subject = { user_id, client_id, user_epoch: 0, client_epoch: 0 }
  for (const audience of [{}, { resource: ORDERS, resource_id: resourceId }]) {
    if (hasSessions) {
      const { access_token, refresh_token } = await tokens.mint({ user_id, client_id, refresh: true, ...('resource' in audience && { resource: ORDERS }) })
      scene.told.push(access_token)
      scene.refresh_tokens.push(refresh_token!)
    } else {
      const token = createToken()
      await tokens.issue({ token, ttl: ACCESS_TTL, fields: { scopes: CARRIED, ...audience } }, subject)
      scene.told.push(token)
    }
  }
  return scene
}

interface Change {
  act: (world: World, scene: Scene) => Promise<unknown>
  /** What a token must not show or do after it; undefined when all is well. */
  judge: (caller: Caller) => string | undefined
  /** The scopes that the client must not be able to use after it. */
  lost: string[]
}

const shows = ({ token, power }: Caller, scope: string) => token.scopes.includes(scope) || power?.scopes?.includes(scope) === true
const names = (caller: Caller, ...scopes: string[]) => scopes.find((scope) => shows(caller, scope))

const CHANGES: Record<string, Change> = {
  'taking scopes from a client': {
    act: async ({ clients }, { client_id }) => await clients.patch(client_id, { data: { scopes: ['free'] } }, ADMIN),
    judge: (caller) => names(caller, 'pay', 'account:read', 'orders:read'),
    lost: ['pay', 'account:read', 'orders:read']
  },
  "declaring a scope's name": {
    act: async ({ resources }) => await resources.create({ data: { id: 'https://pay.example/', name: 'Pay', scopes: { pay: 'pay' } } }),
    judge: (caller) => names(caller, 'pay'),
    lost: ['pay']
  },
  'declaring it at a resource that exists': {
    act: async ({ resources }, { resourceId }) => await resources.patch(resourceId, { data: { scopes: { 'orders:read': 'read orders', pay: 'pay' } } }),
    judge: (caller) => names(caller, 'pay'),
    lost: ['pay']
  },
  'deleting a resource': {
    act: async ({ resources }, { resourceId }) => await resources.remove(resourceId),
    judge: (caller) => caller.token.audience === undefined ? names(caller, 'orders:read') : 'a token of the resource',
    lost: ['orders:read']
  },
  'deleting a resource and declaring its scope elsewhere': {
    act: async ({ resources }, { resourceId }) => {
      await resources.remove(resourceId)
      await resources.create({ data: { id: ORDERS, name: 'Other orders', scopes: { 'orders:read': 'read other orders' } } })
    },
    judge: (caller) => names(caller, 'orders:read'),
    lost: ['orders:read']
  },
  'disabling a client': {
    act: async ({ clients }, { client_id }) => await clients.patch(client_id, { data: { disabled: true } }, ADMIN),
    judge: () => 'a token of a disabled client',
    lost: []
  }
}

/** Somebody who uses or gets tokens while the change is made. */
type Racer = (world: World, scene: Scene) => Promise<unknown>

/** What the authorization server does with a request: it reads, decides on what it read, and writes the token later. */
const issueFor = (resource: string | undefined, kind?: string): Racer => async ({ store, tokens }, scene) => {
  const client = (await store.collection<ClientRecord>('clients').get(scene.client_id))!
  const user = (await store.collection<UserRecord>('users').get(scene.user_id))!
  const registry = await store.collection<Registry>('resources').get(REGISTRY_ID) ?? EMPTY_REGISTRY
  const resource_id = resource === undefined ? undefined : findByUri(registry, resource)?.[0]
  if (client.disabled_at !== undefined || (resource !== undefined && resource_id === undefined)) return
  const audience = resource_id === undefined ? {} : { resource: resource!, resource_id }
  const scopes = narrowScopes({ scopes: CARRIED, ...audience }, client, registry)
  const token = createToken()
  const fields = { scopes, ...audience, ...(kind !== undefined && { kind }) }
  await tokens.issue({ token, ttl: ACCESS_TTL, fields }, { user_id: user.id, client_id: client.id, user_epoch: user.epoch, client_epoch: client.epoch })
  scene.told.push(token)
}

async function lookUp ({ tokens }: World, scene: Scene, token: string, { judge }: Change): Promise<void> {
  const isAfter = scene.acknowledged
  const caller = await Promise.resolve().then(() => tokens.authenticate(token)).catch(() => undefined)
  const wrong = caller === undefined ? undefined : judge(caller)
  if (isAfter && wrong !== undefined) scene.seen.push(wrong)
}

const RACERS: Record<string, Racer> = {
  issue: issueFor(undefined),
  'issue for the resource': issueFor(ORDERS),
  'issue to the client itself': issueFor(undefined, 'ClientCredentials'),
  refresh: async ({ tokens }, scene) => { scene.told.push((await rotate(tokens, scene.refresh_tokens[0]!)).access_token) },
  'refresh for the resource': async ({ tokens }, scene) => { scene.told.push((await rotate(tokens, scene.refresh_tokens[1]!)).access_token) },
  mint: async ({ tokens }, scene) => {
    scene.told.push((await tokens.mint({ user_id: scene.user_id, client_id: scene.client_id, scopes: ['pay'] })).access_token)
  },
  'mint for the resource': async ({ tokens }, scene) => {
    scene.told.push((await tokens.mint({ user_id: scene.user_id, client_id: scene.client_id, resource: ORDERS })).access_token)
  },
  // A write to the client while its scopes are changed: it must bring back nothing.
  'the owner changes the client': async ({ clients }, { client_id, user_id }) => await clients.patch(client_id, { data: { name: 'new' } }, { user_id, isAdmin: false })
}

/** One order of events: what went wrong in it. */
async function play (world: World, change: Change, racers: string[], choose: Choose): Promise<string[]> {
  const { scheduler, inner, tokens } = world
  const scene = await setScene(world, racers.some((name) => name.startsWith('refresh')))
  let error: unknown
  await scheduler.run({
    change: async () => {
      await change.act(world, scene).catch((thrown: unknown) => { error = thrown })
      scene.acknowledged = true
    },
    look: async () => { for (const token of [...scene.told]) await lookUp(world, scene, token, change) },
    ...Object.fromEntries(racers.map((name, index) => [`${name} ${index}`, async () => await RACERS[name]!(world, scene)]))
  }, choose)
  for (const token of scene.told) await lookUp(world, scene, token, change)
  for (const refresh_token of scene.refresh_tokens) {
    const next = await rotate(tokens, refresh_token).catch(() => undefined)
    if (next !== undefined) await lookUp(world, scene, next.access_token, change)
  }
  const client = await inner.collection<ClientRecord>('clients').get(scene.client_id)
  const registry = await inner.collection<Registry>('resources').get(REGISTRY_ID)
  const usable = client === null || registry === null ? [] : listUsableScopes(client, registry)
  // The record itself is true too, once the change is acknowledged.
  const kept = change.lost.filter((scope) => usable.includes(scope) || client?.scopes.includes(scope) === true).map((scope) => `the client keeps ${scope}`)
  // The changes read all clients.
  await inner.collection('clients').delete(scene.client_id)
  return [...scene.seen, ...kept, ...(error === undefined ? [] : [`the change failed: ${String(error)}`])]
}

const CROWD = [...Object.keys(RACERS), 'issue', 'refresh']

function report (t: Test, { scheduler }: World, wrong: string[], message: string): void {
  if (wrong.length > 0) t.fail(`${message}: ${wrong.join(', ')}`, { order: scheduler.log.map(({ actor, collection, method }) => `${actor}: ${collection}.${method}`) })
}

let runs = 0
const memory = await open('sqlite::memory:')
t.teardown(() => memory.inner.close())
/** The order of other calls does not matter: each token is written once, and what it depends on is in these. */
memory.scheduler.isShared = ({ collection, method }) => ['clients', 'resources'].includes(collection) || method === 'getLinked' || method === 'insert'

t.test('nothing changes: every token works and shows its scopes', async (t) => {
  const scene = await setScene(memory, true)
  for (const race of Object.values(RACERS)) await race(memory, scene)
  t.equal(scene.told.length, 9)
  const callers = await Promise.all(scene.told.map(async (token) => await memory.tokens.authenticate(token)))
  t.equal(callers.filter((caller) => shows(caller, 'pay')).length, 5)
  t.equal(callers.filter((caller) => shows(caller, 'orders:read')).length, 4)
  const kinds = await Promise.all(callers.map(async ({ token }) => (await memory.inner.collection<TokenRecord>('access_tokens').get(token.id))?.kind))
  t.equal(kinds.filter((kind) => kind === 'ClientCredentials').length, 1)
  await memory.inner.collection('clients').delete(scene.client_id)
})

for (const [name, change] of Object.entries(CHANGES)) {
  t.test(`${name}: orders with one racer, and with many`, async (t) => {
    for (const racer of Object.keys(RACERS)) {
      const { runs: played } = await exhaust(MOST_ORDERS, async (choose) => report(t, memory, await play(memory, change, [racer], choose), racer))
      runs += played
    }
    for (let seed = 1; seed <= RANDOM_ORDERS; seed++) {
      report(t, memory, await play(memory, change, CROWD, createRandom(seed)), `seed ${seed}`)
      runs++
    }
  })
}

t.test('enough orders were played', async (t) => {
  t.comment(`${runs} orders`)
  t.ok(runs >= LEAST, `${runs}`)
})

t.test('with cached documents', async (t) => {
  const file = await open(`sqlite:${t.testdir()}/identity.db`)
  t.teardown(() => file.inner.close())
  for (const [name, change] of Object.entries(CHANGES)) {
    for (let seed = 1; seed <= RANDOM_ORDERS_ON_FILE; seed++) report(t, file, await play(file, change, CROWD, createRandom(seed)), `${name}, seed ${seed}`)
  }
})
