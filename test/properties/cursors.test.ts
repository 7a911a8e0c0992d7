import { deepStrictEqual, equal } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { User } from '../../schemas/user.ts'
import { type UserRecord, createUserRecord } from '../../lib/records/user.ts'
import { forEachStore } from '../helpers/build.ts'
import { type Reply, signIn } from '../helpers/people.ts'
import { anyText, checkProperty, compareValues } from '../helpers/property.ts'

// In the future of a MongoDB server's clock, whose TTL index would remove expired documents.
const BEGIN = Date.UTC(2126, 10, 21)

const FIELDS = { account: 'account', created: 'created_at', modified: 'modified_at', verified: 'verified_at', name: 'name' } as const
type Key = keyof typeof FIELDS

const days = fc.integer({ min: 0, max: 4 })
const people = fc.record({
  name: fc.oneof(anyText(3), anyText(256)).filter((name) => [...name].length <= 256),
  created: days,
  modified: days,
  verified: fc.option(days)
})
const sorts = fc.uniqueArray(fc.record({ key: fc.constantFrom(...Object.keys(FIELDS) as Key[]), direction: fc.constantFrom('asc', 'desc') }), { selector: ({ key }) => key, maxLength: 5 })

/** A user whom the filter finds, or leaves out. */
const newcomers = fc.record({ person: people, isMatch: fc.boolean() })

t.test('the pages that the links lead to are the whole list, while others are added', async (t) => {
  await forEachStore(t, async (t, build) => {
    const kit = await build(t, { time: BEGIN, openapi: false })
    const admin = await signIn(kit, { user: 'admin', roles: ['admin'] })
    const users = kit.app.identity.store.collection<UserRecord>('users')
    const toTime = (day: number) => new Date(BEGIN + day * 86_400_000).toISOString()
    let count = 0

    async function add ({ name, created, modified, verified }: typeof people extends fc.Arbitrary<infer T> ? T : never, prefix = 'walk'): Promise<UserRecord> {
      const record = createUserRecord(BEGIN, { account: `${prefix}${count++}`, roles: {}, password: '', name, info: {} })
      const { verified_at: _verified, ...rest } = { ...record, created_at: toTime(created), modified_at: toTime(modified) }
      const stored: UserRecord = { ...rest, ...(verified !== null && { verified_at: toTime(verified) }) }
      await users.insert(stored)
      return stored
    }

    await checkProperty(t, 40, fc.asyncProperty(fc.array(people, { maxLength: 24 }), sorts, fc.integer({ min: 1, max: 9 }), fc.array(newcomers, { maxLength: 6 }), async (list, sort, limit, meanwhile) => {
      await users.deleteMany({ contains: { account: 'walk' } })
      const records: UserRecord[] = []
      for (const person of list) records.push(await add(person))
      const keys = sort.length === 0 ? [{ key: 'account' as const, direction: 'asc' }] : sort
      records.sort((one, other) => {
        for (const { key, direction } of [...keys, { key: 'id', direction: keys.at(-1)!.direction }]) {
          const field = key === 'id' ? key : FIELDS[key as Key]
          const order = compareValues(one[field], other[field])
          if (order !== 0) return direction === 'asc' ? order : -order
        }
        return 0
      })
      const expected = records.map(({ id }) => id)
      const query = `contains=walk&sort=${sort.map(({ key, direction }) => `${key}:${direction}`).join()}`
      const whole = await admin.get<{ data: User[] }>(`/user/list?${query}&limit=0`)
      deepStrictEqual(whole.body.data.map(({ user_id }) => user_id), expected)

      const seen: string[] = []
      const added = [...meanwhile]
      for (let next: string | undefined = `${query}&limit=${limit}`; next !== undefined;) {
        const { status, headers, body }: Reply<{ data: User[] }> = await admin.get(`/user/list?${next}`)
        equal(status, 200)
        seen.push(...body.data.map(({ user_id }) => user_id))
        next = /^<\?([^>]*)>; rel="next"/.exec(String(headers.link))?.[1]
        const newcomer = added.pop()
        if (newcomer !== undefined) await add(newcomer.person, newcomer.isMatch ? 'walk' : 'other')
      }
      equal(new Set(seen).size, seen.length, 'nobody is on two pages')
      deepStrictEqual(seen.filter((id) => expected.includes(id)), expected)
    }))
  })
})
