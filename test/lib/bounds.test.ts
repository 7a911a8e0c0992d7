import { createSecretKey } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { Places } from '../../lib/client-documents/places.ts'
import { createFailures } from '../../lib/events/failures.ts'
import { runFor } from '../../lib/events/origin.ts'
import type { Happening } from '../../lib/events/types.ts'
import { FairQueue, type Turn } from '../../lib/fair-queue.ts'
import { createQuestions } from '../../lib/lazy-migration/questions.ts'
import { createReads } from '../../lib/lists/reads.ts'
import type { Job } from '../../lib/mail/delivery.ts'
import { createOutbox } from '../../lib/mail/outbox.ts'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import { toTurn } from '../../lib/roles.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createAttempts } from '../../lib/throttling/attempts.ts'
import { groupNetwork, toNetworkTurn as toStranger } from '../../lib/throttling/networks.ts'
import { createPlaces } from '../../lib/upstreams/places.ts'
import { createPasswords } from '../../lib/users/passwords.ts'
import { createTimers } from '../helpers/timers.ts'
import { SILENT_RECORDER } from '../helpers/events.ts'

const root = new URL('../../', import.meta.url)

const PERSON = toTurn({ user_id: 'ann' })

/** Makes strangers from these networks fill a bound, and returns what a known person then does. It rejects where strangers hold it up. */
type Fill = (t: Test, networks: readonly string[]) => Promise<() => Promise<unknown>>

/** A bound that holds for all, and the file that sets it. */
interface Bound { file: string, what: string, fill: Fill }

const openMemory = async (t: Test) => {
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now, onError: (error) => { throw error } })
  t.teardown(() => store.close())
  return store
}

/** Starts as much work for each network as it may have. Work that is refused is what the bound is for. */
function flood (networks: readonly string[], work: (turn: Turn) => Promise<unknown>, most: number): void {
  for (let index = 0; index < most; index++) for (const ip of networks) work(toStranger(ip)).catch(() => {})
}

/** Work that hangs until the test lets it go on, one by one as its slots become free. */
function createGate () {
  const waiting: (() => void)[] = []
  return { enter: async () => await new Promise<void>((resolve) => waiting.push(resolve)), open: (count: number) => { for (const resolve of waiting.splice(0, count)) resolve() } }
}

/** What the person does ends while few of the others' jobs do. */
async function pass (work: Promise<unknown>, gate: ReturnType<typeof createGate>, slots: number, rounds = 3): Promise<unknown> {
  const state = { isOver: false }
  const end = work.finally(() => { state.isOver = true })
  end.catch(() => {})
  for (let round = 0; round < rounds; round++) {
    gate.open(slots)
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  }
  if (!state.isOver) throw new Error('the person waits for more than one round of strangers')
  return await end
}

const BOUNDS: readonly Bound[] = [
  {
    file: 'lib/fair-queue.ts',
    what: 'turns and places of a queue',
    async fill (_t, networks) {
      const gate = createGate()
      const queue = new FairQueue({ what: 'jobs', slots: 2, places: 40, maxWait: 60_000, duration: 1 })
      flood(networks, async (turn) => await queue.run(gate.enter, turn), 100)
      return async () => await pass(queue.run(async () => 'done', PERSON), gate, 2)
    }
  },
  {
    file: 'lib/users/passwords.ts',
    what: 'password hashes',
    async fill (t, networks) {
      const passwords = createPasswords({ cost: 4, queue: 50 })
      t.teardown(() => passwords.close())
      flood(networks, async (turn) => await passwords.verify('wrong', undefined, turn), 100)
      return async () => await passwords.verify('wrong', undefined, PERSON)
    }
  },
  {
    file: 'lib/upstreams/places.ts',
    what: 'sign-ins with a provider',
    async fill (_t, networks) {
      const gate = createGate()
      const places = createPlaces('p', 60_000)
      flood(networks, async (turn) => await places.run(turn, async (enter) => {
        await enter()
        await gate.enter()
      }), 400)
      await new Promise(setImmediate)
      return async () => await pass(places.run(PERSON, async (enter) => await enter()), gate, 20)
    }
  },
  {
    file: 'lib/lazy-migration/questions.ts',
    what: 'questions to the old system',
    async fill (_t, networks) {
      const gate = createGate()
      const questions = createQuestions({
        now: Date.now,
        onWarning: () => {},
        put: async () => {
          await gate.enter()
          return { ok: false }
        }
      })
      flood(networks, async (turn) => await questions.ask({ account: 'a', password: 'b' } as never, turn), 400)
      return async () => {
        if (await pass(questions.ask({ account: 'ann', password: 'b' } as never, PERSON), gate, 20) === null) throw new Error('was not asked')
      }
    }
  },
  {
    file: 'lib/lists/reads.ts',
    what: 'lists and counts',
    async fill (t, networks) {
      const gate = createGate()
      const reads = createReads(await openMemory(t))
      // Only people with a token read lists. They take turns by account.
      for (let index = 0; index < 20; index++) {
        for (const ip of networks) reads.count(async () => await gate.enter() ?? 0, { user_id: `account of ${ip}`, isAdmin: false }).catch(() => {})
      }
      return async () => await pass(reads.count(async () => 1, { user_id: 'ann', isAdmin: false }), gate, 8, 2 + networks.length / 8)
    }
  },
  {
    file: 'lib/events/lane.ts',
    what: 'series of events',
    async fill (_t, networks) {
      const inserted: Happening[] = []
      const failures = createFailures({
        recorder: { insert: async (happening) => { inserted.push(happening) }, measure: () => 1_250 },
        getKey: () => createSecretKey(Buffer.alloc(32)),
        onError: (error) => { throw error },
        timers: createTimers()
      })
      for (let index = 0; index < 12_000; index++) {
        runFor({ via: 'page', address: networks[index % networks.length]! }, () => failures.recordSignIn(`person ${index}`, '', { reason: 'wrong_password' }))
      }
      return async () => {
        await failures.settle()
        inserted.length = 0
        runFor({ via: 'page', address: networks[0]! }, () => failures.recordSignIn('ann', '', { reason: 'wrong_password', isKnown: true }))
        await failures.settle()
        if (inserted[0]?.id !== 'ann' || inserted[0].count !== undefined) throw new Error('the failure has no event of its own')
      }
    }
  },
  {
    file: 'lib/throttling/attempts.ts',
    what: 'concurrent attempts at one password',
    async fill (t, networks) {
      const attempts = createAttempts({ store: await openMemory(t), now: Date.now, key: createSecretKey(Buffer.alloc(32)) })
      const holder = { id: 'ann', epoch: 0 }
      for (let index = 0; index < 10; index++) {
        for (let stranger = 0; stranger < networks.length; stranger++) attempts.run({ kind: 'account', name: 'ann', holder }, async () => await new Promise(() => {})).catch(() => {})
      }
      return async () => await attempts.run({ kind: 'browser', name: 'b', holder }, async () => true)
    }
  },
  {
    file: 'lib/mail/outbox.ts',
    what: 'waiting mails',
    async fill (t, networks) {
      const store = await openMemory(t)
      const outbox = createOutbox({
        store, now: Date.now, box: createSecretBox(generateSecretKey()), recorder: SILENT_RECORDER, mail: { send: async () => {} }, host: () => 'a.example', compose: async () => null, onError: () => {}, onFailed: () => {}
      })
      // It accepts mails, and sends none.
      await outbox.close()
      const enqueue = async (job: Job, network?: string) => await outbox.enqueue(job, 60_000, { ...(network !== undefined && { network }) })
      await Promise.all([...new Set(networks.map(groupNetwork))].map(async (network) => {
        for (let index = 0; index < 6_000; index++) {
          try {
            await enqueue({ kind: 'a' }, network)
          } catch {
            return
          }
        }
      }))
      return async () => {
        await enqueue({ kind: 'own', user_id: 'ann' })
        for (let index = 0; index < 100; index++) await enqueue({ kind: 'a' }, '203.0.113.1')
      }
    }
  },
  {
    file: 'lib/client-documents/places.ts',
    what: 'fetches of documents',
    async fill (_t, networks) {
      const gate = createGate()
      const places = new Places({ now: Date.now })
      for (let index = 0; index < 40; index++) {
        for (const ip of networks) {
          places.run(`made-up-${index}-${ip}.example`, toStranger(ip), gate.enter).catch(() => {})
        }
      }
      await new Promise(setImmediate)
      // Whoever names a new document has no account yet.
      return async () => await pass(places.run('agent.example', toStranger('203.0.113.1'), async () => 'read'), gate, 8)
    }
  },
]

/** Files with a bound that no stranger reaches, and why. A new file belongs here or above. */
const OTHERS: { [file: string]: string } = {
  'lib/users/limited-attempts.ts': 'look-ups of names for events: a network has one at a time, and without one the event names no account',
  'lib/client-documents/present.ts': 'remembered failures: an evicted one costs a fetch, which places.ts bounds',
  'lib/sent-forms/kept-answers.ts': 'test/pages/sent-forms.test.ts fills it: the network with the most answers loses its oldest',
  'lib/throttling/failure-limit.ts': 'test/oidc/client-limits.test.ts fills it: entries are of a client and a network',
  'lib/users/people.ts': 'forgets which reads are recorded already: they are recorded again, and published once',
  'lib/throttling/counter.ts': 'evicts counts, so it refuses nobody; an address alone cannot make up 10,000 names in a minute',
  'lib/logout/logouts.ts': 'a lane for each client, or the clients of one owner',
  'lib/webhooks/failed-events.ts': 'webhooks are those of operators',
  'lib/webhooks/trials.ts': 'operators only',
  'lib/clients/logos.ts': 'one fetch a client, of those that the operator vouches for; the next page begins what had no place',
  'lib/clients/secret-ends.ts': 'keeps failed work; each client has five secrets',
  'lib/work/queue.ts': 'the slots of a kind of work, see its files',
  'lib/work/room.ts': 'counts of the store: an evicted one costs a read',
  'lib/work/attempts.ts': 'receivers that timed out: a forgotten one gets one more attempt',
  'lib/work/outage.ts': 'lines of the log: receivers beyond the bound share one',
  'lib/deadline.ts': 'leases of work in flight, of which there are as many as slots: a forgotten one is watched from its beginning',
  'lib/import/remembered.ts': 'operators only',
  'lib/import/import-users.ts': 'operators only',
  'lib/maintenance/doctor.ts': 'operators only',
  'lib/store/sqlite/connection.ts': 'statements of this code, none of which a caller makes up',
  'lib/work/background.ts': 'removals after a change of a known person',
  'lib/tokens/derived.ts': 'a cache: an evicted entry costs a look-up',
  'lib/oidc/client-source.ts': 'a cache of clients that exist: an evicted one is made again',
  'lib/store/sqlite/cache.ts': 'a cache',
  'lib/remote/local-tokens.ts': 'a cache of the app, with entries for tokens whose signature is right',
  'lib/remote/remote-tokens.ts': 'a cache of the app, with entries for good tokens apart from those for bad ones',
  'lib/upstreams/calls.ts': 'URLs of the operator',
  'lib/metrics/watch-store.ts': 'numbers for metrics',
  'lib/events/dead-letters.ts': 'events of one document',
  'lib/events/pending.ts': 'events of one document',
  'lib/store/sqlite/writer.ts': 'calls of all kinds, each bounded before it by what is above',
  'lib/store/sqlite/thread-calls.ts': 'calls of all kinds, each bounded before it by what is above'
}

for (const [name, networks] of [
  ['one network', ['192.0.2.1']],
  ['one /48', Array.from({ length: 32 }, (_, index) => `2001:db8:1:${index.toString(16)}::1`)],
  ['eight networks', Array.from({ length: 8 }, (_, index) => `198.51.${index}.1`)]
] as const) {
  t.test(`${name}: strangers fill a bound, and a known person does what it guards`, async (t) => {
    for (const { file, what, fill } of BOUNDS) {
      await t.test(`${what} (${file})`, async (t) => {
        const act = await fill(t, networks)
        await t.resolves(act())
      })
    }
  })
}

t.test('in a full queue, a known caller takes a place from the one with most, and strangers of one network each are no group with most', async (t) => {
  const gate = createGate()
  const queue = new FairQueue({ what: 'jobs', slots: 1, places: 10, maxWait: 60_000, duration: 1 })
  for (let index = 0; index < 11; index++) queue.run(gate.enter, toStranger(`192.0.2.${index}`)).catch(() => {})
  for (const id of ['ann', 'bob', 'eve']) t.equal(await pass(queue.run(async () => id, toTurn({ user_id: id })), gate, 2), id)
  const known = createGate()
  const full = new FairQueue({ what: 'jobs', slots: 1, places: 10, maxWait: 60_000, duration: 1 })
  for (let index = 0; index < 20; index++) full.run(known.enter, toTurn({ user_id: 'eve' })).catch(() => {})
  t.equal(await pass(full.run(async () => 'ann', PERSON), known, 2), 'ann', 'known callers take turns by account')
  for (let index = 0; index < 20; index++) full.run(known.enter, toTurn({ user_id: `account ${index}` })).catch(() => {})
  t.equal(await pass(full.run(async () => 'new', toStranger('192.0.2.1')), known, 4), 'new', 'and leave turns to strangers')
})

t.test('500 people behind one address use all of a queue', async (t) => {
  const queue = new FairQueue({ what: 'jobs', slots: 4, places: 500, maxWait: 60_000, duration: 1 })
  const done = await Promise.all(Array.from({ length: 500 }, async () => await queue.run(async () => 'done', toStranger('192.0.2.1'))))
  t.equal(done.length, 500)
})

t.test('every file with a bound for all is in a table here', async (t) => {
  const files = (await readdir(new URL('lib/', root), { recursive: true })).filter((file) => file.endsWith('.ts')).map((file) => `lib/${file}`)
  const listed = new Set([...BOUNDS.map(({ file }) => file), ...Object.keys(OTHERS)])
  const missing: string[] = []
  for (const file of files) {
    const text = await readFile(new URL(file, root), 'utf8')
    if (/new (FairQueue|Slots|LRUCache)\b|^const (CAPACITY|MOST_WAITING|WAITING|CALLS|MOST_TESTS|MOST_RUNS)\b|(?<!\))\.size >=? \w*[A-Z]/m.test(text) && !listed.has(file)) missing.push(file)
  }
  t.strictSame(missing, [])
  t.strictSame([...listed].filter((file) => !files.includes(file)), [])
})
