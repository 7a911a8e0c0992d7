import { generateKeySync } from 'node:crypto'
import t from 'tap'
import { DocumentError } from '../../lib/client-documents/error.ts'
import type { Fetched } from '../../lib/client-documents/fetch.ts'
import { createLimits } from '../../lib/client-documents/limits.ts'
import { createPresent } from '../../lib/client-documents/present.ts'
import { createQuestions } from '../../lib/lazy-migration/questions.ts'
import { createDecoys } from '../../lib/hashes/decoys.ts'
import { OutboundError } from '../../lib/outbound/fetcher.ts'
import { RemoteTokens } from '../../lib/remote/remote-tokens.ts'
import { DEFAULT_ROLE_NAMES, holdsRole } from '../../lib/roles.ts'
import type { Store } from '../../lib/store/port.ts'
import { createCounter } from '../../lib/throttling/counter.ts'
import { createCalls } from '../../lib/upstreams/calls.ts'
import { createRoleChanges } from '../../lib/upstreams/role-changes.ts'
import type { Upstream } from '../../schemas/upstream.ts'
import { openRules } from '../helpers/services.ts'
import { DAY, HOUR, MINUTE, SECOND, succeeds, tryLives } from '../helpers/lives.ts'

const KEY = generateKeySync('hmac', { length: 256 })

// How long what others have said is remembered: documents of clients, metadata of providers, answers of other services, and failures.

const { store, now, advance, users, stored } = await openRules(t)
const clock = { now, advance }
const DOCUMENT: Fetched = { body: { client_name: 'one', redirect_uris: ['https://agent.example/cb'], method: 'none' }, lifetime: HOUR }
const down = () => new DocumentError('unreachable', 'the host does not answer', { state: 'down' })
const gone = () => new DocumentError('status', 'the host must answer 200', { value: '404', state: 'gone' })
let hosts = 0

/** The documents of a new host, which answers by `answers`, and with the document when these are used up. */
function openHost (...answers: (() => DocumentError)[]) {
  const url = new URL(`https://agent-${hosts++}.example/client.json`)
  const seen = { fetches: 0, failures: 0 }
  const getDocument = async () => {
    seen.fetches++
    const error = answers.shift()?.()
    if (error !== undefined) throw error
    return DOCUMENT
  }
  const present = createPresent({ store, now, fetch: { getDocument }, limits: createLimits({ counter: createCounter(now), now }), isNamed: () => true, onFailed: () => { seen.failures++ } })
  const read = async (address = '192.0.2.1') => await present.read(url, address)
  /** Whether a read succeeds, or how it fails. */
  const isRead = async () => await read().then(() => true, (error: DocumentError) => {
    if (error.rule !== 'unreachable' && error.rule !== 'gone') throw error
    return false
  })
  return { url, seen, present, read, isRead, answers }
}

/** Fetches of the host while it is read. */
async function countFetches ({ seen }: ReturnType<typeof openHost>, read: () => Promise<unknown>): Promise<number> {
  const before = seen.fetches
  await read()
  return seen.fetches - before
}

await tryLives(t, { clock, store }, [
  {
    name: 'a document is fresh',
    life: HOUR,
    async make () {
      const host = openHost()
      await host.read()
      // A document that nobody has consented to goes an hour after its last use.
      await store.collection('documents').update((await host.present.findStored(host.url.href))!.id, { unset: ['expired_at'] })
      return async () => await countFetches(host, host.read) === 0
    }
  },
  {
    name: 'a document that nobody has consented to, after its last use',
    life: HOUR,
    stored: 'documents',
    async make () {
      const host = openHost()
      await host.read()
      advance(30 * MINUTE)
      await host.read()
      return async () => await host.present.findStored(host.url.href) !== null
    }
  },
  {
    name: 'a failed fetch is remembered',
    life: MINUTE,
    async make () {
      const host = openHost(down)
      await t.rejects(host.read(), { name: 'DocumentError', rule: 'unreachable' })
      return async () => await countFetches(host, async () => await host.read().catch(() => {})) === 0
    }
  },
  {
    name: 'a stored document serves while its host does not answer',
    life: 7 * DAY,
    async make () {
      const host = openHost()
      await host.read()
      await store.collection('documents').update((await host.present.findStored(host.url.href))!.id, { unset: ['expired_at'] })
      host.answers.push(down)
      return host.isRead
    }
  },
  {
    name: 'a stored document serves after its host said that there is none',
    life: HOUR,
    async make () {
      const host = openHost()
      await host.read()
      await store.collection('documents').update((await host.present.findStored(host.url.href))!.id, { unset: ['expired_at'] })
      advance(2 * HOUR)
      host.answers.push(gone, gone)
      await host.read()
      return host.isRead
    }
  },
  {
    name: 'a stored document is not fetched again for its keys',
    life: MINUTE,
    async make () {
      const host = openHost()
      await host.read()
      return async () => await countFetches(host, async () => await host.present.renew(host.url, '')) === 0
    }
  }
])

t.test('a stored document does not serve where its host answers with another one that is refused', async (t) => {
  const { read, answers } = openHost()
  await read()
  advance(HOUR - SECOND)
  answers.push(() => new DocumentError('redirect_host', 'must be on the host of the client_id'))
  t.match(await read(), { body: DOCUMENT.body }, 'while it is fresh')
  advance(2 * SECOND)
  await t.rejects(read(), { name: 'DocumentError', rule: 'redirect_host', state: 'refused' })
})

t.test('our own limit is no failure of the document: another address reads it at once', async (t) => {
  const { seen, present, url, read } = openHost()
  for (let count = 0; count < 10; count++) await present.read(new URL(`${url.href}?${count}`), '192.0.2.1')
  await t.rejects(read('192.0.2.1'), { name: 'DocumentError', rule: 'rate', retryAfter: 60 })
  t.equal(seen.fetches, 10)
  t.match(await read('198.51.100.1'), { url: url.href })
  t.equal(seen.fetches, 11)
})

const ISSUER = 'https://idp.example'

/** An upstream whose claim gives a role for as long as it does unless set. */
const MAPPED: Upstream = { id: 'corp', kind: 'oidc', issuer: ISSUER, clientId: 'c', clientSecret: 's', create: true, link: 'confirm', sync: 'first', roles: { claim: 'groups', map: { staff: 'clerk' } } }
let holders = 0
const METADATA = { status: 200, type: 'application/json', headers: {}, body: Buffer.from('{}') }

/** A provider that answers once with its metadata, and then with `then`. */
function openProvider (then: () => Promise<typeof METADATA>) {
  let fetches = 0
  const read = createCalls({ read: async () => ++fetches === 1 ? METADATA : await then() }, now).read(async () => new AbortController().signal)
  return { read: async () => await read(ISSUER), count: () => fetches }
}

const TOKEN_INFO = JSON.stringify({ data: { user_id: 'ann', account: 'ann', name: '', roles: {}, client_id: 'app', scopes: [] } })

/** A service that answers once about a token, and never again. */
function openRemote () {
  let asked = 0
  const ask = async () => {
    if (++asked > 1) throw new Error('the service is down')
    return { text: TOKEN_INFO }
  }
  const tokens = new RemoteTokens({ client: { ask }, cacheTtl: 10 * SECOND, staleTtl: MINUTE, cacheSize: 10, roles: DEFAULT_ROLE_NAMES, now, onChange: () => {} })
  return { authenticate: async () => await tokens.authenticate('token'), count: () => asked }
}

/** Counts the reads of the forms of passwords. */
function openDecoys () {
  let reads = 0
  const counting = {
    collection: (name: string) => name === 'users' ? store.collection(name) : { get: async () => { reads++ } }
  } as unknown as Store
  const { choose } = createDecoys({ store: counting, now, getKey: () => KEY, onError: (error) => { throw error } })
  return { choose: async () => await choose('ann'), count: () => reads }
}

await tryLives(t, { clock }, [
  {
    name: 'the metadata of a provider is fresh',
    life: HOUR,
    async make () {
      const { read, count } = openProvider(async () => METADATA)
      await read()
      return async () => {
        await read()
        return count() === 1
      }
    }
  },
  {
    name: 'the metadata of a provider serves while it does not answer',
    life: DAY,
    async make () {
      const { read } = openProvider(async () => { throw new OutboundError('ECONNREFUSED') })
      await read()
      return async () => await read().then(() => true, (error: unknown) => !(error instanceof OutboundError))
    }
  },
  {
    name: 'a role by the map of an upstream, with the sweep',
    life: 30 * DAY,
    async make () {
      const { user_id } = await users.create({ data: { account: `holder-${holders++}`, password: 'x' } })
      const { apply, sweep } = createRoleChanges({ stored, upstreams: [MAPPED], roles: DEFAULT_ROLE_NAMES, now })
      await apply(MAPPED, { names: ['clerk'], at: now() }, (await stored.users.get(user_id))!, { upstream: 'corp', subject: 'x' })
      return async () => {
        await sweep()
        return holdsRole((await stored.users.get(user_id))!.roles, 'clerk')
      }
    }
  },
  {
    name: 'a former system that gave no answer is left alone',
    life: 30 * SECOND,
    async make () {
      let asked = 0
      const put = async () => {
        asked++
        throw new OutboundError('ECONNREFUSED')
      }
      const questions = createQuestions({ put, now, onWarning: () => {} })
      const ask = async (account: string) => await questions.ask({ type: 'password', account, password: 'x' }, { group: `network of ${account}` })
      for (const account of ['ann', 'bob', 'cy']) t.equal(await ask(account), null)
      return async () => {
        await ask('ann')
        return asked === 3
      }
    }
  },
  {
    name: 'the shares of the forms of passwords are kept',
    life: 10 * MINUTE,
    async make () {
      const { choose, count } = openDecoys()
      await choose()
      return async () => {
        await choose()
        return count() === 1
      }
    }
  },
  {
    name: 'an answer about a token is cached',
    life: 10 * SECOND,
    async make () {
      const { authenticate, count } = openRemote()
      await authenticate()
      return async () => {
        await authenticate()
        return count() === 1
      }
    }
  },
  {
    name: 'an answer about a token serves while the service does not answer',
    life: MINUTE,
    async make () {
      const { authenticate } = openRemote()
      await authenticate()
      return async () => await succeeds(authenticate(), 'ErrRsc')
    }
  }
])

t.test('what was remembered by a clock that was ahead, and that was set back since, counts for nothing', async (t) => {
  const { authenticate, count } = openRemote()
  await authenticate()
  let asked = 0
  const put = async () => {
    asked++
    throw new OutboundError('ECONNREFUSED')
  }
  const questions = createQuestions({ put, now, onWarning: () => {} })
  for (const account of ['ann', 'bob', 'cy']) await questions.ask({ type: 'password', account, password: 'x' }, { group: `network of ${account}` })
  t.strictSame([questions.isResting(), asked], [true, 3])
  advance(-HOUR)
  t.equal(questions.isResting(), false)
  await t.rejects(authenticate(), { code: 'ErrRsc' }, 'it is asked again')
  t.equal(count(), 2)
  advance(HOUR)
})
