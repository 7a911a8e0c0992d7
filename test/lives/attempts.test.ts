import { generateKeySync } from 'node:crypto'
import t from 'tap'
import type { Proof } from '../../lib/proofs.ts'
import { toBase } from '../../lib/sign-in/step-up.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createAttempts, toPause } from '../../lib/throttling/attempts.ts'
import { createCounter } from '../../lib/throttling/counter.ts'
import { createKnownBrowsers } from '../../lib/throttling/known-browsers.ts'
import { createChallenges } from '../../lib/ways/challenges.ts'
import { meets } from '../../lib/ways/step-up.ts'
import { findCodeStep, generateCode } from '../../lib/ways/totp.ts'
import { createTestClock } from '../../testing/clock.ts'
import { DAY, HOUR, MINUTE, SECOND, succeeds, tryLives } from '../helpers/lives.ts'

// How long codes of an app and what was proved count, and how long failures and counts are remembered.

const clock = createTestClock('2126-11-23T00:00:00.000Z')
const { now } = clock
const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now, onError: (error) => { throw error } })
t.teardown(() => store.close())
const key = generateKeySync('hmac', { length: 256 })
const known = createKnownBrowsers({ keys: [key], now })

const SEED = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
const STEP = 30 * SECOND
const prove = (kind: Proof['kind'], ago = 0): Proof => ({ kind, way: kind, at: new Date(now() - ago).toISOString() })
const baseOf = (proofs: Proof[]) => toBase({ user_id: 'ann', user_epoch: 0, proofs }, now())

await tryLives(t, { clock }, [
  {
    name: 'a code of an app, until the end of the next step',
    life: 2 * STEP,
    async make () {
      clock.advance(STEP - now() % STEP)
      const code = await generateCode(SEED, now())
      return async () => await findCodeStep(SEED, code, now()) !== null
    }
  },
  {
    name: 'a proof to which a step-up adds',
    life: 12 * HOUR,
    make () {
      const proofs = [prove('password')]
      return () => baseOf(proofs) !== undefined
    }
  },
  {
    name: 'a second factor to which a step-up adds, beside a later password',
    life: 12 * HOUR,
    make () {
      const factor = prove('totp')
      return () => baseOf([prove('password', HOUR), factor])!.proofs.includes(factor)
    }
  },
  {
    name: 'a proof that meets the demand of a guard',
    life: 10 * MINUTE,
    make () {
      const strength = { acr: 'pwd', amr: ['pwd'], time: new Date(now()).toISOString() } as unknown as Parameters<typeof meets>[0]
      return () => meets(strength, { maxAge: 600 }, now())
    }
  }
])

t.test('a step-up adds to a password of an hour, and forgets a code of 13 hours', async (t) => {
  t.strictSame(baseOf([prove('password', HOUR), prove('totp', 13 * HOUR)])?.proofs.map(({ kind }) => kind), ['password'])
  t.equal(baseOf([prove('password', 13 * HOUR), prove('totp', HOUR)]), undefined, 'a second factor alone begins no sign-in')
})

t.test('a challenge counts that a clock up to five minutes ahead has issued, and none of one that is further ahead', (t) => {
  const open = (ahead: number) => createChallenges({ store, now: () => now() + ahead, keys: [key] })
  for (const [ahead, isGood] of [[5 * MINUTE - SECOND, true], [5 * MINUTE + SECOND, false], [DAY, false]] as const) {
    t.equal(open(0).isValid(open(ahead).issue('begin', 'secret'), 'begin', 'secret'), isGood, `${ahead / SECOND} s`)
  }
  t.end()
})

t.test('a known browser keeps the count of its failures through a sign-in, and not through a new password, nor for somebody else', (t) => {
  const ids = (cookie: string) => ['ann', 'bob'].map((name) => known.find(cookie, name)?.browser)
  const first = known.add(undefined, ['ann'], { user_id: 'ann', epoch: 0 })
  const [id] = ids(first)
  t.match(id, /./)
  t.strictSame(ids(known.add(first, ['ann'], { user_id: 'ann', epoch: 0 })), [id, undefined])
  const [renewed] = ids(known.add(first, ['ann'], { user_id: 'ann', epoch: 1 }))
  t.match(renewed, /./)
  t.not(renewed, id)
  const [own, other] = ids(known.add(first, ['bob'], { user_id: 'bob', epoch: 0 }))
  t.equal(own, id)
  t.match(other, /./)
  t.not(other, id)
  t.end()
})

const attempts = createAttempts({ store, now, key })
const counter = createCounter(now)
let names = 0

/** Fails so many times at a new password, and waits as long as each pause. */
async function fail (times: number): Promise<() => Promise<null>> {
  const target = { kind: 'user', name: `user ${names++}` } as const
  const attempt = async () => await attempts.run<never>(target, async () => null)
  for (let failures = 0; failures < times; failures++) {
    clock.advance(toPause(failures))
    await attempt()
  }
  return attempt
}

await tryLives(t, { clock, store }, [
  {
    name: 'a pause after 25 wrong passwords',
    life: 32 * SECOND,
    async make () {
      const attempt = await fail(25)
      return async () => !await succeeds(attempt(), 'ErrLimit')
    }
  },
  {
    name: 'the longest pause',
    life: 15 * MINUTE,
    async make () {
      const attempt = await fail(40)
      return async () => !await succeeds(attempt(), 'ErrLimit')
    }
  },
  {
    name: 'the count of 19 wrong passwords, a day for each',
    life: 19 * DAY,
    async make () {
      const attempt = await fail(19)
      return async () => {
        await attempt()
        return !await succeeds(attempt(), 'ErrLimit')
      }
    }
  },
  {
    name: 'a known browser',
    life: 365 * DAY,
    make () {
      clock.advance(SECOND - now() % SECOND)
      const cookie = known.add(undefined, ['ann'], { user_id: 'ann', epoch: 0 })
      return () => known.find(cookie, 'Ann') !== undefined
    }
  },
  {
    name: 'the window of a count',
    life: MINUTE,
    async make () {
      const name = `address ${names++}`
      await counter.count('address', name, MINUTE)
      return async () => (await counter.count('address', name, MINUTE)).current === 2
    }
  }
])
