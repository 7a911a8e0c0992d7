import t, { type Test } from 'tap'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import { type OutboundDocument, OutboundError } from '../../lib/outbound/fetcher.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createCalls } from '../../lib/upstreams/calls.ts'
import type { UpstreamError } from '../../lib/upstreams/failure.ts'
import { createUpstreams } from '../../lib/upstreams/upstreams.ts'
import type { Upstream } from '../../schemas/upstream.ts'
import { type GivenBackRow, checkRow, watchSizes } from '../helpers/given-back.ts'
import { recordOutages } from '../helpers/outages.ts'
import { wrapStore } from '../helpers/wrap-store.ts'

/** A signal that lives as long as the process. */
const { signal } = new AbortController()
const signals = { 'the signal': signal }

const toAnswer = (body: object): OutboundDocument => ({ status: 200, type: 'application/json', headers: {}, body: Buffer.from(JSON.stringify(body)) })
const SETTINGS = { kind: 'github', clientId: 'c', clientSecret: 's', create: false, link: 'confirm', sync: 'first' } satisfies Partial<Upstream>

interface Sign { read: () => Promise<OutboundDocument>, params?: Record<string, string>, by?: string, outcome: string }

const REFUSAL = { error: 'access_denied' }
const CODE = { code: 'code' }

/** The ways in which a sign-in with a provider ends. */
const ENDS: Record<string, Sign> = {
  'that succeeds': { read: async () => toAnswer({ access_token: 'token', id: 1 }), outcome: 'in' },
  'whose code is refused': { read: async () => toAnswer({ error: 'bad_verification_code' }), outcome: 'down' },
  'whose provider is not there': { read: () => Promise.reject(new OutboundError('ECONNREFUSED')), outcome: 'down' },
  'that the person refuses': { read: () => Promise.reject(new Error('not called')), params: REFUSAL, outcome: 'refused' },
  'whose answer comes by another provider': { read: () => Promise.reject(new Error('not called')), by: 'other', outcome: 'over' }
}

async function openSignIns (t: Test, { read, params = CODE, by = 'work' }: Sign): Promise<Pick<GivenBackRow, 'call' | 'sizes' | 'signals'>> {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => inner.close())
  let stored = 0
  const store = wrapStore(inner, async ({ method }, run) => {
    const done = await run()
    if (method === 'insert') stored++
    if (method === 'delete' && done === true) stored--
    return done
  })
  const upstreams = ['work', 'other'].map((id): Upstream => ({ ...SETTINGS, id }))
  const { outages } = recordOutages()
  const { opened: { begin, complete }, sizes } = await watchSizes(() => (
    createUpstreams({ store, box: createSecretBox(generateSecretKey()), now: Date.now, upstreams, outages, outbound: { read } })))
  return {
    async call () {
      const url = await begin('work', { secret: 'secret', redirectUri: 'https://id.example/callback', intent: { kind: 'sign_in', place: {} } })
      const state = new URL(url).searchParams.get('state')!
      return await complete(by, new URLSearchParams({ ...params, state }), 'secret', { signal })
        .then(() => 'in', ({ refusal, message }: UpstreamError) => refusal ?? message)
    },
    signals,
    sizes: { ...sizes, 'stored attempts': () => stored }
  }
}

for (const [what, sign] of Object.entries(ENDS)) {
  t.test(`a sign-in with a provider ${what}: its attempt and everything else is given back`, async (t) => (
    await checkRow(t, { ...await openSignIns(t, sign), outcome: sign.outcome })))
}

const KEYS = 'https://idp.example/keys'

/** What the wait for the next fetch comes to. */
const WAITS: Record<string, { wait: () => Promise<void>, outcome: unknown }> = {
  'until it is time': { wait: async () => {}, outcome: 200 },
  'until the sign-in has no more time': { wait: () => Promise.reject(new Error('timeout')), outcome: 'timeout' }
}

for (const [what, { wait, outcome }] of Object.entries(WAITS)) {
  t.test(`a read of keys that waits for the next fetch ${what}: everything is given back, and the next one is fetched`, async (t) => {
    let fetches = 0
    const read = async () => {
      fetches++
      return toAnswer({ keys: [] })
    }
    let isOver = false
    const { opened: calls, sizes } = await watchSizes(() => createCalls({ read }, () => 0, async () => { if (!isOver) await wait() }))
    const readKeys = async () => (await calls.read(async () => signal, () => 'unknown', 1_000)(KEYS)).status
    await readKeys()
    await checkRow(t, { call: readKeys, outcome, signals, sizes })
    isOver = true
    const before = fetches
    t.equal(await readKeys(), 200)
    t.equal(fetches, before + 1)
  })
}
