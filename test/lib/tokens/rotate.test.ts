import t from 'tap'
import type { GrantRecord, TokenRecord } from '../../../lib/records/token.ts'
import { hashToken } from '../../../lib/crypto/random-token.ts'
import type { Tokens } from '../../../lib/tokens/tokens.ts'
import { HOUR, at, openLifecycle } from './harness.ts'

/** Looks a refresh token up, and rotates it. Resolves to whether its session goes on. */
async function rotate (tokens: Pick<Tokens, 'find' | 'rotate'>, id: string, grace: number): Promise<boolean> {
  const found = await tokens.find<TokenRecord>('refresh_tokens', id)
  return found !== null && await tokens.rotate(found, grace) !== null
}

for (const name of ['authorization_codes', 'device_codes'] as const) {
  t.test(`spend: one of ${name} is good once, and a second use ends the session of the first`, async (t) => {
    const { tokens, add, mint, grants, isAlive } = await openLifecycle(t)
    const { grant_id, access_token } = await mint()
    const id = await add(name, { consumed: false, grant_id })
    t.equal(await tokens.spend(name, id), true)
    t.ok(await isAlive(access_token))
    t.equal(await tokens.spend(name, id), false)
    t.equal(await grants.get(grant_id), null)
    t.notOk(await isAlive(access_token))
    const alone = await add(name, { consumed: false })
    t.strictSame([await tokens.spend(name, alone), await tokens.spend(name, alone)], [true, false], 'before there is a session')
    t.equal(await tokens.spend(name, 'unknown'), false)
  })
}

t.test('rotate: each first use is one generation', async (t) => {
  const { tokens, mint, grants, advance, add } = await openLifecycle(t)
  const { refresh_token, grant_id } = await mint()
  const id = hashToken(refresh_token)
  advance(5000)
  t.equal(await rotate(tokens, id, 10), true)
  t.match(await grants.get(grant_id), { generation: 1, refreshed_at: [at(5)] })
  t.equal(await rotate(tokens, id, 10), true, 'again, within the grace')
  t.match(await grants.get(grant_id), { generation: 1, refreshed_at: [at(5)] })
  t.equal(await rotate(tokens, 'unknown', 10), false)
  t.equal(await rotate(tokens, await add('refresh_tokens', { grant_id }), 10), false, 'a record of an earlier release')
  t.not(await grants.get(grant_id), null)
  t.equal(await rotate(tokens, await add('refresh_tokens', { generation: 0 }), 10), false, 'without a session')
})

t.test('rotate: a use after the grace ends the session', async (t) => {
  const { tokens, mint, grants, advance, isAlive, events } = await openLifecycle(t)
  const { refresh_token, access_token, grant_id } = await mint()
  const id = hashToken(refresh_token)
  t.ok(await rotate(tokens, id, 10))
  advance(9_999)
  t.ok(await rotate(tokens, id, 10))
  advance(1)
  t.notOk(await rotate(tokens, id, 10))
  t.equal(await grants.get(grant_id), null)
  t.notOk(await isAlive(access_token))
  t.match(events, [{ type: 'session.ended', id: grant_id }])
})

t.test('rotate: the session remembers the last ten first uses', async (t) => {
  const { tokens, mint, grants, add, advance } = await openLifecycle(t)
  const { grant_id } = await mint()
  const ids: string[] = []
  for (let generation = 0; generation < 12; generation++) {
    ids.push(await add('refresh_tokens', { grant_id, generation }))
    t.ok(await rotate(tokens, ids.at(-1)!, HOUR))
    advance(1000)
  }
  t.strictSame((await grants.get(grant_id))?.refreshed_at, Array.from({ length: 10 }, (_, index) => at(11 - index)))
  const { isSpent, find } = tokens
  const spent = await Promise.all(ids.map(async (id) => isSpent((await find<TokenRecord>('refresh_tokens', id))!, HOUR)))
  t.strictSame(spent, [true, true, ...Array(10).fill(false)], 'the uses before are too many for one client')
})

t.test('isSpent: the grace begins with the first use of a generation', async (t) => {
  const { tokens, advance } = await openLifecycle(t)
  advance(100_000)
  const spent = (own: number | undefined, now: number, ...uses: number[]) => tokens.isSpent({
    record: { ...(own !== undefined && { generation: own }) } as TokenRecord, grant: { generation: now, refreshed_at: uses.map(at) } as GrantRecord
  }, 10)
  t.equal(spent(0, 0), false, 'never used')
  t.equal(spent(3, 3, 0, 0, 0), false, 'its generation was not used')
  t.equal(spent(0, 1, 91), false, 'used 9 seconds ago')
  t.equal(spent(0, 1, 90), true, 'used 10 seconds ago')
  t.equal(spent(1, 3, 95, 91, 20), false, 'the second to last use counts')
  t.equal(spent(0, 3, 95, 91, 90), true, 'the third to last')
  t.equal(spent(2, 3, 90, 99, 99), true, 'the last')
  t.equal(spent(0, 3, 99), true, 'a use that nobody remembers')
  t.equal(spent(undefined, 0), true, 'a record of an earlier release')
  t.equal(tokens.isSpent({ record: { generation: 0 } as TokenRecord, grant: null }, 10), true, 'without a session')
})
