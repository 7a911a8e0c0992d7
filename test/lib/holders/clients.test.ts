import t from 'tap'
import { hashToken } from '../../../lib/crypto/random-token.ts'
import type { Actor } from '../../../lib/roles.ts'
import { createTestKey } from '../../helpers/assertions.ts'
import { type HeldRow, checkHolders } from '../../helpers/holders.ts'
import { openRules } from '../../helpers/services.ts'

// What Ann gives belongs to Bob.

const { store, clients, users, tokens } = await openRules(t, { refreshTtl: 3600 })
const NOT_FOUND = { code: 'ErrNotFound' }
let count = 0

/** A person with a client that has secrets and a key. Each key has the same `kid`. */
async function create () {
  const { user_id } = await users.create({ data: { account: `user${count++}`, password: 'p' } })
  const actor: Actor = { user_id, isAdmin: false }
  const { clientId } = await clients.create({ data: { redirectUris: [], scopes: [], name: 'app' }, credentials: true }, actor)
  const { id: secret } = await clients.addSecret(clientId, { data: { name: 'named' } }, actor)
  const [key] = await clients.addKeys(clientId, { keys: [createTestKey('ES256', 'signs').jwk] }, actor)
  const minted = await tokens.mint({ user_id, client_id: clientId, refresh: true })
  return { actor, user_id, clientId, secret, key: key!.id, refresh: minted.refresh_token!, access: minted.access_token }
}

type Owner = Awaited<ReturnType<typeof create>>

/** The call, by each with what is Bob's. */
const each = (call: (by: Owner, bob: Owner) => Promise<unknown>): HeldRow['hold'] => async () => {
  const [ann, bob] = [await create(), await create()]
  return { other: async () => await call(ann, bob), own: async () => await call(bob, bob) }
}

checkHolders(t, store, {
  "another client's secret": { refusal: NOT_FOUND, hold: each(async ({ clientId, actor }, { secret }) => await clients.removeSecret(clientId, secret, actor)) },
  "another client's key, by its thumbprint": { refusal: NOT_FOUND, hold: each(async ({ clientId, actor }, { key }) => await clients.removeKey(clientId, key, actor)) },
  "another person's client: read": { refusal: NOT_FOUND, isRead: true, hold: each(async ({ actor }, { clientId }) => await clients.require(clientId, actor)) },
  "another person's client: changed": { refusal: NOT_FOUND, hold: each(async ({ actor }, { clientId }) => await clients.patch(clientId, { data: { name: 'mine' } }, actor)) },
  "another person's client: removed": { refusal: NOT_FOUND, hold: each(async ({ actor }, { clientId }) => await clients.remove(clientId, actor)) },
  "another person's client: its secrets read": { refusal: NOT_FOUND, isRead: true, hold: each(async ({ actor }, { clientId }) => await clients.listSecrets(clientId, actor)) },
  "another person's client: a secret added": { refusal: NOT_FOUND, hold: each(async ({ actor }, { clientId }) => await clients.addSecret(clientId, { data: { name: 'mine' } }, actor)) },
  "another person's client: a secret removed": { refusal: NOT_FOUND, hold: each(async ({ actor }, { clientId, secret }) => await clients.removeSecret(clientId, secret, actor)) },
  "another person's client: its keys read": { refusal: NOT_FOUND, isRead: true, hold: each(async ({ actor }, { clientId }) => await clients.listKeys(clientId, actor)) },
  "another person's client: a key added": {
    refusal: NOT_FOUND, hold: each(async ({ actor }, { clientId }) => await clients.addKeys(clientId, { keys: [createTestKey('ES256', 'mine').jwk] }, actor))
  },
  "another person's client: a key removed": { refusal: NOT_FOUND, hold: each(async ({ actor }, { clientId }) => await clients.removeKey(clientId, 'signs', actor)) }
})

const hasFirst = async ({ clientId, actor }: Owner) => (await clients.listSecrets(clientId, actor)).secrets.some(({ id }) => id === 'first')
const hasKey = async ({ clientId, actor }: Owner) => (await clients.listKeys(clientId, actor)).length > 0

t.test('what two clients have by one name is removed from one of them only', async (t) => {
  const [ann, bob] = [await create(), await create()]
  for (const [name, isThere] of [['first', hasFirst], ['signs', hasKey]] as const) {
    const listHolders = async () => [await isThere(ann), await isThere(bob)]
    const remove = async ({ clientId, actor }: Owner) => await (name === 'first' ? clients.removeSecret(clientId, name, actor) : clients.removeKey(clientId, name, actor))
    t.strictSame(await listHolders(), [true, true], name)
    await remove(ann)
    t.strictSame(await listHolders(), [false, true], name)
    await remove(bob)
    t.strictSame(await listHolders(), [false, false], name)
  }
})

t.test('a client that is removed takes its own tokens with it, and no others', async (t) => {
  const [ann, bob] = [await create(), await create()]
  const isAlive = async ({ access, refresh }: Owner) => [
    await Promise.resolve().then(() => tokens.authenticate(access)).then(() => true, () => false),
    await store.collection('refresh_tokens').get(hashToken(refresh)) !== null
  ]
  await clients.remove(ann.clientId, ann.actor)
  t.strictSame((await isAlive(ann))[0], false)
  t.strictSame(await isAlive(bob), [true, true])
})
