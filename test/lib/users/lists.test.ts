import t, { type Test } from 'tap'
import type { UserListQuery } from '../../../schemas/user.ts'
import { BEGIN, openRules } from '../../helpers/services.ts'

const ADMIN = { user_id: 'admin', isAdmin: true }
const SECOND = (seconds: number) => new Date(Date.parse(BEGIN) + seconds * 1000).toISOString()

/** Ann, Bob, Cleo and Dan, created a second after each other. */
async function open (t: Test) {
  const rules = await openRules(t)
  const { users, advance } = rules
  for (const [account, name] of [['cleo', 'A'], ['ann', 'D'], ['dan@example.com', 'B'], ['bob', 'C']] as const) {
    await users.create({ data: { account, password: 'p', name }, ...(account === 'cleo' && { expired_at: SECOND(1000) }) }, { id: account })
    advance(1000)
  }
  const all = async <T>(batches: AsyncIterable<T[]>) => {
    const items: T[] = []
    for await (const batch of batches) items.push(...batch)
    return items
  }
  const list = async (query?: UserListQuery) => await all(users.list(query))
  return {
    ...rules,
    all,
    list,
    /** The accounts of a list, and of the page of the same query. */
    accounts: async (query?: UserListQuery) => {
      const names = (await list(query)).map(({ account }) => account)
      t.strictSame((await all((await users.page(query, ADMIN)).batches)).map(({ account }) => account), names)
      return names
    }
  }
}

t.test('which users a list has', async (t) => {
  const { accounts, users } = await open(t)
  const cases: [UserListQuery, string[]][] = [
    [{}, ['ann', 'bob', 'cleo', 'dan@example.com']],
    [{ account: '', contains: '' }, ['ann', 'bob', 'cleo', 'dan@example.com']],
    [{ account: 'BOB' }, ['bob']],
    [{ account: 'bo' }, []],
    [{ contains: 'O' }, ['bob', 'cleo', 'dan@example.com']],
    [{ account: 'bob', contains: 'ann' }, ['bob']],
    [{ contains: '_' }, []]
  ]
  for (const [query, expected] of cases) {
    t.strictSame(await accounts(query), expected, JSON.stringify(query))
    t.equal(await users.count(query), expected.length)
    t.equal(await users.count(query, ADMIN), expected.length)
  }
  t.strictSame(await accounts(), ['ann', 'bob', 'cleo', 'dan@example.com'])
  t.equal(await users.count(), 4)
})

t.test('their order, and the part that is asked for', async (t) => {
  const { accounts, users, all, advance } = await open(t)
  advance(1000)
  await users.patch('dan@example.com', { data: { verified_at: SECOND(-1) } }, ADMIN)
  for (const [sort, first, last] of [
    ['account:desc', 'dan@example.com', 'ann'], ['created:asc', 'cleo', 'bob'], ['created:desc', 'bob', 'cleo'], ['modified:desc', 'dan@example.com', 'cleo'],
    ['name:asc', 'cleo', 'ann'], ['verified:desc', 'bob', 'cleo'], ['', 'ann', 'dan@example.com']
  ] as const) {
    const names = await accounts({ sort })
    t.strictSame([names[0], names.at(-1)], [first, last], sort)
  }
  for (const sort of ['colour:asc', 'account', 'account:up', 'account:asc,account:desc']) {
    t.throws(() => users.list({ sort }), { code: 'ErrParam', message: /^sort: / }, sort)
    await t.rejects(users.page({ sort }), { code: 'ErrParam' })
  }
  t.strictSame(await accounts({ limit: 2 }), ['ann', 'bob'])
  t.strictSame(await accounts({ limit: 2, offset: 1 }), ['bob', 'cleo'])
  t.strictSame(await accounts({ limit: 0 }), ['ann', 'bob', 'cleo', 'dan@example.com'], 'no limit')
  const { after } = await users.page({ limit: 3 })
  t.match(after, /./)
  const { batches, after: end } = await users.page({ limit: 3, after: after! })
  t.strictSame((await all(batches)).map(({ account }) => account), ['dan@example.com'])
  t.equal(end, undefined)
})

t.test('a list without a limit has the first hundred', async (t) => {
  const { list, users } = await open(t)
  for (let index = 0; index < 100; index++) await users.create({ data: { account: `user${index}`, password: 'p' } })
  t.equal((await list()).length, 100)
  t.equal((await list({ limit: 0 })).length, 104)
})

t.test('nothing is read for a caller who has disconnected', async (t) => {
  const { users } = await open(t)
  const gone = { ...ADMIN, signal: AbortSignal.abort() }
  await t.rejects(users.count({}, gone), { code: 'ErrParam', statusCode: 499 })
  await t.rejects(users.page({}, gone), { code: 'ErrParam', statusCode: 499 })
  const here = { ...ADMIN, signal: new AbortController().signal }
  t.equal(await users.count({}, here), 4)
  t.ok(await users.page({}, here))
})

t.test('times are added where they are asked for', async (t) => {
  const { list, users } = await open(t)
  await users.patch('bob', { disable: true }, ADMIN)
  const times = async (account: string, fields?: string) => {
    const query = { account, ...(fields !== undefined && { fields }) }
    const [item] = await list(query)
    t.strictSame(await users.require(account, query), item)
    const { expired_at, disabled_at } = item!
    return { ...('expired_at' in item! && { expired_at }), ...('disabled_at' in item! && { disabled_at }) }
  }
  t.strictSame(await times('cleo'), {})
  t.strictSame(await times('cleo', 'expired'), { expired_at: SECOND(1000) })
  t.strictSame(await times('cleo', 'disabled'), { disabled_at: null })
  t.strictSame(await times('bob', 'expired,disabled'), { expired_at: null, disabled_at: SECOND(4) })
})
