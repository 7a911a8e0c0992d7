import { generateKeySync } from 'node:crypto'
import t from 'tap'
import { PURPOSES, type Purpose, createTickets } from '../../lib/tickets/tickets.ts'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import type { Proof } from '../../lib/proofs.ts'
import { createCarriedLinks } from '../../lib/sign-in/carried-links.ts'
import { createProgress } from '../../lib/sign-in/progress.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createUpstreamAttempts } from '../../lib/upstreams/attempts.ts'
import { createUpstreamEnds } from '../../lib/upstreams/ends.ts'
import { createFoundIdentities } from '../../lib/upstreams/found.ts'
import { createIdentityStanding } from '../../lib/upstreams/standing.ts'
import { createChallenges } from '../../lib/ways/challenges.ts'
import { createCredentials } from '../../lib/ways/credentials.ts'
import { createWaitingPasskeys } from '../../lib/ways/waiting-passkeys.ts'
import { createTestClock } from '../../testing/clock.ts'
import { DAY, HOUR, type Life, MINUTE, SECOND, succeeds, tryLives } from '../helpers/lives.ts'

// How long links, challenges and what a sign-in has proved so far last. The times are those of the documentation.

const clock = createTestClock('2126-11-23T00:00:00.000Z')
const { now } = clock
const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now, onError: (error) => { throw error } })
t.teardown(() => store.close())
const parts = { store, now }
const key = generateKeySync('hmac', { length: 256 })

const tickets = createTickets(parts)
const links: Record<Purpose, number> = {
  reset: HOUR,
  'sign-up': DAY,
  verify: DAY,
  change: HOUR,
  invite: 7 * DAY,
  undo: 72 * HOUR,
  enrol: 72 * HOUR
}

await tryLives(t, { clock, store }, (Object.keys(PURPOSES) as Purpose[]).map((purpose): Life => ({
  name: `a link: ${purpose}`,
  life: links[purpose],
  stored: 'tickets',
  async make () {
    const token = await tickets.issue({ purpose, mailed: true, user_id: 'ann' })
    return async () => await succeeds(tickets.require(token, purpose), 'ErrTicket')
  }
})))

const progress = createProgress(parts)
const carried = createCarriedLinks(parts)
const upstreamAttempts = createUpstreamAttempts({ ...parts, box: createSecretBox(generateSecretKey()) })
const ends = createUpstreamEnds(parts)
const found = createFoundIdentities({ ...parts, ends })
const challenges = createChallenges({ ...parts, keys: [key] })
const waiting = createWaitingPasskeys(parts)
const credentials = createCredentials(parts)
const steps = { user_id: 'ann', user_epoch: 0, account: 'ann', proofs: [{ kind: 'password', way: 'password', at: '2126-11-23T00:00:00.000Z' } satisfies Proof] }
const ADDED = { kind: 'totp', material: { step: 0 } } as const

await tryLives(t, { clock, store }, [
  {
    name: 'a sign-in between two steps',
    life: 10 * MINUTE,
    stored: 'sign_ins',
    async make () {
      await progress.put('secret', steps)
      return async () => await progress.load('secret') !== null
    }
  },
  {
    name: 'a sign-in that stays at a step, from then on',
    life: 10 * MINUTE,
    stored: 'sign_ins',
    async make () {
      await progress.put('secret', steps)
      clock.advance(9 * MINUTE)
      await progress.stay('secret', undefined)
      return async () => await progress.load('secret') !== null
    }
  },
  {
    name: 'a link that a browser carries through a sign-in',
    life: 10 * MINUTE,
    stored: 'sign_ins',
    async make () {
      await carried.carryLink('secret', 'ticket')
      return async () => await carried.findLink('secret') === 'ticket'
    }
  },
  {
    name: 'an authorization at a provider',
    life: 10 * MINUTE,
    stored: 'sign_ins',
    async make () {
      const { state } = await upstreamAttempts.begin('secret', { upstream: 'work', redirectUri: 'https://id.example/cb', intent: { kind: 'sign_in', place: {} } })
      return async () => await succeeds(upstreamAttempts.require('work', state, 'secret'), 'over')
    }
  },
  {
    name: 'an identity that was proved in a sign-in',
    life: 10 * MINUTE,
    stored: 'sign_ins',
    async make () {
      const of = { secret: 'secret', place: { uid: 'u' } }
      await found.put(of, { upstream: 'work', claimed: { issuer: 'https://idp.example', subject: 's' } as never, intent: { kind: 'sign_in', place: of.place } })
      return async () => await found.find(of) !== null
    }
  },
  {
    name: 'the same, 55 minutes after the person was sent there, however often it is stored again',
    life: 5 * MINUTE,
    stored: 'sign_ins',
    async make () {
      const of = { secret: 'secret', place: { uid: 'u' } }
      const asked_at = new Date(now()).toISOString()
      clock.advance(55 * MINUTE)
      await found.put(of, { upstream: 'work', claimed: { issuer: 'https://idp.example', subject: 's', asked_at } as never, intent: { kind: 'sign_in', place: of.place } })
      return async () => await found.find(of) !== null
    }
  },
  {
    name: 'a sign-in with a provider, from the way there to its session',
    life: 12 * HOUR,
    async make () {
      const proof = { kind: 'upstream', way: 'way', at: new Date(now()).toISOString(), asked_at: new Date(now()).toISOString() } satisfies Proof
      const standing = createIdentityStanding({ ...parts, ends, upstreams: [], policy: { findOnly: () => undefined, findUpstream: () => undefined } })
      return async () => !await standing.isEndedFor('ann', proof, true)
    }
  },
  {
    name: 'the end of a session at a provider, for what is under way',
    life: DAY,
    stored: 'upstream_ends',
    async make () {
      const end = { upstream: 'work', sid: 's', offline: false }
      t.not(await ends.begin(String(now()), end), null)
      return async () => await ends.isEnded({ session: 's' })
    }
  },
  {
    name: 'the time for which a provider is not asked about a session again',
    life: 10 * MINUTE,
    stored: 'sign_ins',
    async make () {
      t.equal(await upstreamAttempts.mayRenew('uid'), true)
      return async () => {
        if (!await upstreamAttempts.mayRenew('uid')) return true
        // It begins again with the question.
        await store.collection('sign_ins').deleteMany({ before: { id: '~' } })
        return false
      }
    }
  },
  ...(['session', 'refresh'] as const).map((what): Life => ({
    name: `what came of a provider, from its last answer: ${what}`,
    life: HOUR,
    async make () {
      const way = { kind: 'upstream' as const, upstream: 'work', key: 'key', at: new Date(now()).toISOString() }
      const made = await credentials.insert({ id: 'ann' }, [{ kind: 'upstream', upstream: 'work', key: 'key', material: {} }])
      const { id } = made[0]!
      const user = { id: 'ann', ways: { [id]: way }, roles: {} } as never
      const proof = { kind: 'upstream', way: id, at: way.at } satisfies Proof
      const upstreams = [{ id: 'work', kind: 'oidc', [`${what}Max`]: 3600 }] as never
      const standing = createIdentityStanding({ ...parts, ends, upstreams, policy: { findOnly: () => undefined, findUpstream: () => undefined } })
      return async () => !await (what === 'session' ? standing.isOver(user, proof) : standing.isPastRefresh(user, { session_uid: 'uid', upstream_proof: proof } as never))
    }
  })),
  {
    name: 'a challenge for a passkey, and for as long no second use of it',
    life: 5 * MINUTE,
    async make () {
      const [challenge, twin] = [challenges.issue('begin', 'secret'), challenges.issue('begin', 'secret')]
      t.equal(await challenges.spend(challenge), true)
      return async () => {
        if (!challenges.isValid(twin, 'begin', 'secret')) return false
        t.equal(await challenges.spend(challenge), false, 'the use is remembered')
        return true
      }
    }
  },
  {
    name: 'a challenge of a process whose clock is ahead',
    life: 5 * MINUTE,
    make () {
      clock.advance(5 * MINUTE - SECOND)
      const challenge = challenges.issue('begin', 'secret')
      clock.advance(SECOND - 5 * MINUTE)
      t.ok(challenges.isValid(challenge, 'begin', 'secret'), 'before its time')
      clock.advance(5 * MINUTE - SECOND)
      return () => challenges.isValid(challenge, 'begin', 'secret')
    }
  },
  {
    name: 'a challenge of a process whose clock is ahead, and for as long no second use of it',
    life: 5 * MINUTE,
    async make () {
      clock.advance(5 * MINUTE - SECOND)
      const challenge = challenges.issue('begin', 'secret')
      clock.advance(SECOND - 5 * MINUTE)
      t.equal(await challenges.spend(challenge), true, 'before its time')
      clock.advance(5 * MINUTE - SECOND)
      return async () => {
        if (!challenges.isValid(challenge, 'begin', 'secret')) return false
        t.equal(await challenges.spend(challenge), false, 'the use is remembered')
        return true
      }
    }
  },
  {
    name: 'a passkey that waits for the person to keep their recovery codes',
    life: 30 * MINUTE,
    stored: 'sign_ins',
    async make () {
      const [{ id } = { id: '' }] = await credentials.insert({ id: 'ann' }, [ADDED])
      await waiting.add('key', id)
      return async () => await waiting.has('key')
    }
  },
  {
    name: 'a factor that was begun, until it must be named',
    life: 30 * MINUTE,
    async make () {
      const [{ id } = { id: '' }] = await credentials.insert({ id: 'bea' }, [ADDED])
      return async () => await credentials.findNew('bea', id) !== null
    }
  },
  {
    name: 'a factor that was begun and not named, until it is removed',
    life: HOUR,
    async make () {
      const [{ id } = { id: '' }] = await credentials.insert({ id: 'cem' }, [ADDED])
      return async () => {
        await credentials.sweep({ id: 'cem' })
        return await store.collection('credentials').get(id) !== null
      }
    }
  },
  {
    name: 'the limit of factors that were begun',
    life: HOUR,
    async make () {
      await store.collection('credentials').deleteMany({ equal: { user_id: 'dan' } })
      await credentials.insert({ id: 'dan' }, Array(20).fill(ADDED))
      return async () => !await succeeds(credentials.insert({ id: 'dan' }, [ADDED]), 'ErrLimit')
    }
  }
])
