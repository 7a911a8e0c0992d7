import t, { type Test } from 'tap'
import { createSecretBox, generateSecretKey } from '../../../lib/crypto/secrets.ts'
import { hashToken } from '../../../lib/crypto/random-token.ts'
import type { Turn } from '../../../lib/fair-queue.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { createUpstreams } from '../../../lib/upstreams/upstreams.ts'
import { recordOutages } from '../../helpers/outages.ts'
import { settleAt } from '../../helpers/turns.ts'
import { waitUntil } from '../../helpers/wait.ts'

const ISSUER = 'https://idp.example'
const PLACES = 20
const WAITING = 200

const toAnswer = (body: object, status = 200) => ({ status, type: 'application/json', headers: {}, body: Buffer.from(JSON.stringify(body)) })

const METADATA = toAnswer({
  issuer: ISSUER, authorization_endpoint: `${ISSUER}/authorize`, token_endpoint: `${ISSUER}/token`, jwks_uri: `${ISSUER}/keys`, response_types_supported: ['code']
})

/** A provider whose token endpoint answers when the test says so, and then refuses the code. */
async function startProvider (t: Test) {
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS })
  t.teardown(() => store.close())
  const { outages } = recordOutages()
  let time = Date.parse('2126-11-23T00:00:00.000Z')
  let metadata: () => Promise<typeof METADATA> = async () => METADATA
  const held: (() => void)[] = []
  const codes: string[] = []
  const seen = { metadata: 0 }
  const upstreams = createUpstreams({
    store,
    box: createSecretBox(generateSecretKey()),
    now: () => time,
    upstreams: [{ id: 'idp', kind: 'oidc', issuer: ISSUER, clientId: 'c', clientSecret: 's', create: false, link: 'confirm', sync: 'first' }],
    outages,
    deadline: 60_000,
    outbound: {
      async read ({ url, body }) {
        if (url !== `${ISSUER}/token`) {
          seen.metadata++
          return await metadata()
        }
        codes.push(new URLSearchParams(String(body)).get('code')!)
        await new Promise<void>((resolve) => held.push(resolve))
        return toAnswer({ error: 'invalid_grant' }, 400)
      }
    }
  })

  const begin = async (secret: string, turn?: Turn) => new URL(await upstreams.begin('idp', { secret, redirectUri: 'https://id.example/callback', intent: { kind: 'sign_in', place: {} }, ...(turn && { turn }) }))

  return {
    store,
    held,
    codes,
    seen,
    begin,
    pass (milliseconds: number) { time += milliseconds },
    answerMetadata (next: typeof metadata) { metadata = next },
    /** Begins a sign-in, and gives a function that brings its answer. */
    async prepare (code: string, turn: Turn = {}, more: Record<string, string> = {}) {
      const state = (await begin(code)).searchParams.get('state')!
      const bring = async () => await upstreams.complete('idp', new URLSearchParams({ code, state, ...more }), code, turn).then(() => 'in', (error: Error & { refusal?: string }) => error.refusal ?? error.message)
      return { state, bring }
    }
  }
}

const of = (network: string, address = network): Turn => ({ key: `address ${address}`, group: `network ${network}` })

/** Fills the places and the queue from these networks. */
async function flood ({ prepare, held }: Awaited<ReturnType<typeof startProvider>>, networks: number): Promise<Promise<string>[]> {
  const attempts = []
  for (let index = 0; index < PLACES + WAITING; index++) attempts.push(await prepare(`made up ${index}`, of(`attacker ${index % networks}`)))
  const brought = attempts.map(({ bring }) => bring())
  await waitUntil('all places are taken', () => held.length === PLACES)
  return brought
}

for (const networks of [1, 8]) {
  t.test(`made-up codes from ${networks} networks are in nobody's way`, async (t) => {
    const provider = await startProvider(t)
    const { prepare, held, codes, seen } = provider
    const made = await flood(provider, networks)
    t.equal(await settleAt('calls', () => codes.length), PLACES, 'twenty at once, also of one network alone')
    const before = seen.metadata
    const people = []
    for (let index = 0; index < 20; index++) people.push(await prepare(`person ${index}`, of(`person ${index}`)))
    t.equal(seen.metadata, before, 'they are sent to the provider at once: what the cache has needs no place')
    const answers = people.map(({ bring }) => bring())
    for (let index = 0; index < 20; index++) {
      held.shift()!()
      await waitUntil('the next call', () => codes.length === PLACES + index + 1)
    }
    t.same(codes.slice(PLACES).sort(), Array.from({ length: 20 }, (_each, index) => `person ${index}`).sort(), 'the next twenty places are theirs')
    const ending = { isOver: false }
    const all = Promise.all([...answers, ...made]).finally(() => { ending.isOver = true })
    await waitUntil('everybody has an answer', () => {
      held.shift()?.()
      return ending.isOver
    })
    t.same(new Set((await all).slice(0, 20)), new Set(['down']), 'none of them was turned away: this provider refuses their codes')
    t.equal((await all).filter((answer) => answer === 'busy').length, 20, 'they have the places in the queue that the others filled')
  })
}

t.test('the networks of one /48 have the turns of one', async (t) => {
  const { prepare, held, codes } = await startProvider(t)
  const made = []
  for (let index = 0; index < PLACES + 40; index++) made.push(await prepare(`made up ${index}`, of('a /48', `address ${index}`)))
  const brought = made.map(({ bring }) => bring())
  await waitUntil('all places are taken', () => held.length === PLACES)
  const person = (await prepare('person', of('elsewhere'))).bring()
  held.shift()!()
  await waitUntil('the next call', () => codes.length > PLACES)
  t.equal(codes.at(-1), 'person')
  await waitUntil('everybody has an answer', async () => {
    held.shift()?.()
    return await Promise.race([Promise.all([person, ...brought]).then(() => true), new Promise((resolve) => setImmediate(resolve, false))])
  })
})

t.test('an answer that finds no place may be brought again', async (t) => {
  const provider = await startProvider(t)
  const { prepare, held, codes, pass } = provider
  const made = await flood(provider, 1)
  const late = await prepare('late', of('attacker 0'))
  t.equal(await late.bring(), 'busy')
  t.equal(await late.bring(), 'busy', 'as often as they like')
  const ending = { isOver: false }
  const all = Promise.all(made).then(() => { ending.isOver = true })
  await waitUntil('the others have an answer', () => {
    held.shift()?.()
    return ending.isOver
  })
  await all
  const again = late.bring()
  await waitUntil('it is redeemed', () => codes.at(-1) === 'late')
  t.equal(await late.bring(), 'over', 'once')
  held.shift()!()
  t.equal(await again, 'down')
  const old = await prepare('old')
  pass(10 * 60_000)
  t.equal(await old.bring(), 'over')
})

t.test('what calls nobody needs no place', async (t) => {
  const provider = await startProvider(t)
  const { prepare, begin, held, pass, answerMetadata, seen, store } = provider
  const refusal = await prepare('refused', of('attacker 0'), { error: 'access_denied' })
  const made = await flood(provider, 1)
  t.equal(await refusal.bring(), 'refused', 'a refusal of the provider')
  t.equal(await store.collection('sign_ins').get(hashToken(`upstream ${refusal.state}`)), null, 'which is spent')
  t.match(await begin('s', of('attacker 0')), { origin: ISSUER }, 'a sign-in that begins')
  pass(61 * 60_000)
  t.match(await begin('s', of('attacker 0')), { origin: ISSUER }, 'also with metadata of an hour ago, where the queue has no place to read them again')
  answerMetadata(async () => { throw new Error('not called') })
  const before = seen.metadata
  const waiting = begin('s', of('person'))
  t.equal(await settleAt('calls', () => seen.metadata), before, 'where it has, it is in turn')
  for (const release of held.splice(0)) release()
  await waitUntil('everybody has an answer', async () => {
    held.shift()?.()
    return await Promise.race([Promise.allSettled([waiting, ...made]).then(() => true), new Promise((resolve) => setImmediate(resolve, false))])
  })
})

t.test('whoever has waited for the metadata takes them from the cache', async (t) => {
  const { begin, seen, answerMetadata } = await startProvider(t)
  const asked = Promise.withResolvers<typeof METADATA>()
  answerMetadata(async () => await asked.promise)
  const begun = Array.from({ length: 60 }, async (_each, index) => await begin('s', of(`person ${index}`)))
  await waitUntil('they are read', () => seen.metadata > 0)
  asked.resolve(METADATA)
  t.match(new Set((await Promise.all(begun)).map(({ origin }) => origin)), new Set([ISSUER]))
  t.ok(seen.metadata <= PLACES, `${seen.metadata} calls`)
})

t.test('whoever disconnects while they wait leaves their place, and keeps their answer', async (t) => {
  const provider = await startProvider(t)
  const { prepare, held, codes } = provider
  const made = await flood(provider, 8)
  const caller = new AbortController()
  const one = await prepare('one', { ...of('person'), signal: caller.signal })
  const waiting = one.bring()
  caller.abort()
  t.match(await waiting, /connection was closed/)
  const ending = { isOver: false }
  const all = Promise.all(made).then(() => { ending.isOver = true })
  await waitUntil('the others have an answer', () => {
    held.shift()?.()
    return ending.isOver
  })
  await all
  t.notOk(codes.includes('one'))
})
