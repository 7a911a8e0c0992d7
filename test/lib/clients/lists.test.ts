import t, { type Test } from 'tap'
import type { ClientListQuery } from '../../../schemas/client.ts'
import { IdentityError } from '../../../lib/errors.ts'
import type { Actor } from '../../../lib/roles.ts'
import { openRules } from '../../helpers/services.ts'

const ADMIN: Actor = { user_id: 'admin', isAdmin: true }
const ANN: Actor = { user_id: 'ann', isAdmin: false }
const BLANK = { redirectUris: [], scopes: [] }

/** Ann's apps a and c, and Bob's b, registered a second after each other. */
async function open (t: Test) {
  const rules = await openRules(t)
  const { clients, advance } = rules
  for (const [name, owner] of [['c', 'ann'], ['a', 'ann'], ['b', 'bob']] as const) {
    await clients.create({ data: { ...BLANK, name } }, { user_id: owner, isAdmin: false }, { id: name })
    advance(1000)
  }
  return {
    ...rules,
    /** The names of a list, and of the page of the same query. */
    names: async (query: Omit<ClientListQuery, 'fields'>, actor: Actor) => {
      const read = async (batches: AsyncIterable<{ name?: string }[]>) => {
        const names: (string | undefined)[] = []
        for await (const batch of batches) names.push(...batch.map(({ name }) => name))
        return names
      }
      const names = await read(clients.list(query, actor))
      t.strictSame(await read((await clients.page(query, actor)).batches as AsyncIterable<{ name?: string }[]>), names)
      return names
    }
  }
}

t.test('which clients a caller sees', async (t) => {
  const { names, clients } = await open(t)
  const cases: [string | undefined, Actor, string[]][] = [
    [undefined, ADMIN, ['a', 'b', 'c']], ['', ADMIN, ['a', 'b', 'c']], ['ann', ADMIN, ['a', 'c']], ['nobody', ADMIN, []],
    [undefined, ANN, ['a', 'c']], ['bob', ANN, ['a', 'c']], [undefined, { user_id: 'eve', isAdmin: false }, []]
  ]
  for (const [user, actor, expected] of cases) {
    t.strictSame(await names(user === undefined ? {} : { user }, actor), expected, `${user} for ${actor.user_id}`)
    t.equal(await clients.count(user, actor), expected.length)
  }
})

t.test('their order, and the part that is asked for', async (t) => {
  const { names, clients } = await open(t)
  await clients.patch('a', { data: { image: 'https://a.example/i' } }, ANN)
  for (const [sort, expected] of [
    ['', ['a', 'b', 'c']], ['name:desc', ['c', 'b', 'a']], ['created:asc', ['c', 'a', 'b']], ['created:desc', ['b', 'a', 'c']], ['modified:desc', ['a', 'b', 'c']]
  ] as const) t.strictSame(await names({ sort }, ADMIN), expected, sort)
  for (const sort of ['colour:asc', 'name', 'name:up']) t.throws(() => clients.list({ sort }, ADMIN), { code: 'ErrParam', message: /^sort: / }, sort)
  t.strictSame(await names({ limit: 1 }, ADMIN), ['a'])
  t.strictSame(await names({ limit: 1, offset: 2 }, ADMIN), ['c'])
  const { after } = await clients.page({ limit: 2 }, ADMIN)
  t.strictSame(await names({ after: after! }, ADMIN), ['c'])
  for (let index = 0; index < 100; index++) await clients.create({ data: { ...BLANK, name: 'x' } }, ANN)
  t.equal((await names({}, ADMIN)).length, 100, 'the first hundred')
  t.equal((await names({ limit: 0 }, ADMIN)).length, 103)
})

t.test('nothing is read for a caller who has disconnected', async (t) => {
  const { clients } = await open(t)
  const gone = { ...ADMIN, signal: AbortSignal.abort() }
  await t.rejects(clients.count(undefined, gone), { code: 'ErrParam', statusCode: 499 })
  await t.rejects(clients.page({}, gone), { code: 'ErrParam', statusCode: 499 })
})

t.test('whose a new client is, and whose quota counts', async (t) => {
  const asked: unknown[] = []
  let isFull = false
  const { clients, users, records } = await openRules(t, {
    checkQuota: async (userId, { isAdmin }) => {
      asked.push([userId, isAdmin])
      if (isFull) throw new IdentityError('ErrLimit', 'clients: a user may have at most 1')
    }
  })
  const { user_id } = await users.create({ data: { account: 'bob', password: 'p' } })
  const create = async (actor: Actor, userId?: string) => {
    const { clientId } = await clients.create({ data: { ...BLANK, name: 'n', ...(userId !== undefined && { userId }) } }, actor)
    return (await records.clients.get(clientId))?.userId
  }
  t.equal(await create(ANN), 'ann')
  t.equal(await create(ADMIN), 'admin')
  t.equal(await create(ADMIN, user_id), user_id)
  for (const id of [user_id, 'nobody', '']) t.equal(await create(ANN, id), 'ann')
  t.strictSame(asked.splice(0), [['ann', false], ['admin', true], [user_id, true], ['ann', false], ['ann', false], ['ann', false]])
  await t.rejects(create(ADMIN, ''), { code: 'ErrParam', message: 'userId: must not be empty' })
  await t.rejects(create(ADMIN, 'nobody'), { code: 'USER_NOT_EXIST' })
  isFull = true
  await t.rejects(create(ANN), { code: 'ErrLimit' })
  t.equal(await records.clients.count(), 6)
})

t.test('a client does not delete itself, and no user deletes those of others', async (t) => {
  const { clients, records, tokens } = await open(t)
  await t.rejects(clients.remove('a', { ...ANN, client_id: 'a' }), { code: 'ErrPerm', message: 'clientId: a client cannot delete itself' })
  await t.rejects(clients.remove('b', ANN), { code: 'ErrNotFound' })
  await t.rejects(clients.require('b', ANN), { code: 'ErrNotFound' })
  await t.rejects(clients.patch('b', { data: { name: 'x' } }, ANN), { code: 'ErrNotFound' })
  const issue = async (client_id: string) => await tokens.issue({ token: client_id, ttl: 60 }, { user_id: 'ann', client_id, user_epoch: 0, client_epoch: 0 })
  for (const id of ['a', 'b', 'c']) await issue(id)
  await clients.remove('a', { ...ANN, client_id: 'c' })
  await tokens.settle()
  t.equal(await records.clients.count(), 2)
  t.equal(await records.tokens.count(), 2, 'its tokens are gone')
  await clients.removeOwned('ann', { ...ANN, client_id: 'c' })
  await tokens.settle()
  t.equal(await records.clients.count(), 1)
  t.equal(await records.tokens.count(), 1)
  await clients.remove('b', ADMIN)
  t.equal(await records.clients.count(), 0)
})

t.test('a patch without a change', async (t) => {
  const { clients, records } = await open(t)
  const before = await records.clients.get('a')
  for (const body of [{}, { data: {} }, { regen_secret: false }]) await t.rejects(clients.patch('a', body, ANN), { code: 'ErrParam', message: 'body: must contain a change' })
  await t.rejects(clients.patch('a', { regen_secret: true }, ANN), { code: 'ErrParam', message: 'regen_secret: a public client has no secret' })
  t.strictSame(await records.clients.get('a'), before)
  await clients.patch('a', { data: { image: null } }, ANN)
  t.match(await records.clients.get('a'), { revision: 1 })
})
