import t, { type Test } from 'tap'
import type { Logouts } from '../../../lib/logout/logouts.ts'
import type { GrantRecord, TokenRecord } from '../../../lib/records/token.ts'
import { DEFAULT_ROLE_NAMES } from '../../../lib/roles.ts'
import type { Document, Json } from '../../../lib/store/port.ts'
import { createAuthorizations } from '../../../lib/oidc/authorizations.ts'
import { createOwnSessions } from '../../../lib/sessions/own-sessions.ts'
import { createTokens } from '../../../lib/tokens/tokens.ts'
import { reuseMongoDatabase } from '../../helpers/mongo-database.ts'
import { MONGODB_URL } from '../../helpers/mongodb.ts'
import { Scheduler, exhaust } from '../../helpers/scheduler.ts'
import { openEvents, toText } from '../events/harness.ts'

t.setTimeout(240_000)

const UID = 'tab'
const BOUND = ['bound 1', 'bound 2']

type Fields = Document & { [field: string]: Json }

/** Ann, who is signed in to a browser, with two bound token sessions and an independent one, and a token without a session. */
async function open (t: Test, database = 'sqlite::memory:') {
  const scheduler = new Scheduler()
  const events = await openEvents(t, { around: scheduler.around, database })
  const { inner, store, now, recorder, connect } = events
  /** For each call, the bound grants at that time. */
  const told: number[] = []
  const grants = inner.collection<GrantRecord>('grants')
  const countBound = async () => (await Promise.all(BOUND.map((id) => grants.get(id)))).filter((grant) => grant !== null).length
  const logouts = { enqueueForSession: async () => { told.push(await countBound()) } } as unknown as Logouts
  const errors: unknown[] = []
  const connectTokens = () => createTokens({ store, now, roles: DEFAULT_ROLE_NAMES, recorder, logouts, report: () => (error) => { errors.push(error) } })
  const tokens = connectTokens()
  const put = async (collection: string, fields: Fields) => await inner.collection<Fields>(collection).put({
    created_at: '2126-11-21T02:00:00.000Z', expired_at: '2127-11-21T02:00:00.000Z', user_epoch: 0, client_epoch: 0, user_id: 'ann', ...fields
  })
  return {
    ...events,
    scheduler,
    tokens,
    told,
    grants,
    countBound,
    ownSessions: createOwnSessions({ store, now, tokens, recorder, authorizations: createAuthorizations(store) }),
    async signIn (): Promise<void> {
      for (const name of ['events', 'event_inbox', 'feed', 'sign_in_sessions', 'grants', 'access_tokens']) await inner.collection(name).deleteMany({ since: { id: '' } })
      told.length = 0
      await put('sign_in_sessions', { id: 'cookie', uid: UID, signed_in_at: '2126-11-21T02:00:00.000Z', payload: {} })
      for (const id of BOUND) await put('grants', { id, client_id: `app of ${id}`, session_uid: UID, bound: true })
      await put('grants', { id: 'offline', client_id: 'another app', session_uid: UID, bound: false })
      await put('access_tokens', { id: 'token', client_id: 'app', kind: 'ClientCredentials' })
    },
    countSessions: async () => await inner.collection('sign_in_sessions').count(),
    hasToken: async () => await inner.collection<TokenRecord>('access_tokens').get('token') !== null,
    /** The next start: its relay publishes. */
    async restart (): Promise<void> {
      const relay = connect({ ends: connectTokens().ends })
      await relay.flush()
      await relay.close()
    },
    /** The events so far, sorted, gaps left out. */
    readTexts: async () => (await events.readAll()).map(toText).filter((text) => text !== 'gap').sort()
  }
}

type Setting = Awaited<ReturnType<typeof open>>

/** Stops a process at its store call of this number and at all later ones, before or after the call is made. @returns whether it got there */
async function killAt ({ scheduler }: Setting, call: number, act: () => Promise<unknown>): Promise<boolean> {
  let count = 0
  scheduler.interrupt = () => {
    if (++count > call) throw new Error('killed')
  }
  await scheduler.run({ process: act }, () => 0)
  scheduler.interrupt = () => {}
  return count > call
}

const ENDED = ['browser.signed_out tab', 'session.ended bound 1', 'session.ended bound 2']

async function endSignIn (t: Test, database?: string): Promise<void> {
  const setting = await open(t, database)
  const { signIn, tokens, ownSessions, restart, countBound, countSessions, readTexts, told, grants, countPending } = setting
  let decided = 0
  for (let call = 0, isKilled = true; isKilled; call++) {
    for (const next of ['restart', 'again'] as const) {
      await signIn()
      isKilled = await killAt(setting, call, async () => await tokens.endSignIn(UID))
      const isWhole = await countSessions() === 1 && await countBound() === BOUND.length
      if (next === 'again') {
        const found = await ownSessions.endBrowser('ann', UID).then(() => true, (error: { code: string }) => error.code !== 'ErrNotFound')
        if (!found && await countBound() > 0) t.fail(`call ${call}: not found, while tokens are alive`)
        if (found && await countBound() > 0) t.fail(`call ${call}: the second call ended nothing`)
        await t.rejects(ownSessions.endBrowser('ann', UID), { code: 'ErrNotFound' })
      }
      await restart()
      const texts = await readTexts()
      if (texts.length === 0) {
        if (!isWhole || next === 'again') t.fail(`call ${call}: a change without its event`)
        continue
      }
      decided++
      if (texts.join() !== ENDED.join()) t.strictSame(texts, ENDED, `call ${call}`)
      if (await countBound() > 0 || await countSessions() > 0) t.fail(`call ${call}: something is alive`)
      if (await grants.get('offline') === null) t.fail('an independent session was ended')
      if (told[0] !== BOUND.length) t.fail(`call ${call}: clients were told when ${told[0]} of their sessions were left`)
      if (await countPending() > 0) t.fail(`call ${call}: something is left`)
    }
  }
  t.ok(decided > 10, `${decided} interruptions after the decision`)
}

t.test('endSignIn: interrupted at any store call, it happened as a whole or not at all', async (t) => {
  await t.test('on SQLite in memory', async (t) => await endSignIn(t))
  await t.test('on SQLite', async (t) => await endSignIn(t, `sqlite:${t.testdir()}/store.db`))
  await t.test('on MongoDB', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => await endSignIn(t, reuseMongoDatabase(t, MONGODB_URL!)))
})

t.test('endGrant and revoke: interrupted at any store call, the change and its event are there or neither is', async (t) => {
  const setting = await open(t)
  const { signIn, tokens, restart, grants, hasToken, readTexts } = setting
  const acts = {
    'session.ended bound 1': { act: async () => await tokens.endGrant('bound 1'), isAlive: async () => await grants.get('bound 1') !== null },
    'token.revoked token': { act: async () => await tokens.revoke({ id: 'token' }), isAlive: hasToken }
  }
  for (const [text, { act, isAlive }] of Object.entries(acts)) {
    for (let call = 0, isKilled = true; isKilled; call++) {
      await signIn()
      isKilled = await killAt(setting, call, act)
      await restart()
      t.strictSame(await readTexts(), await isAlive() ? [] : [text], `${text}, call ${call}`)
    }
    t.notOk(await isAlive())
  }
})

t.test('two calls at once: one event for each end, in any order', async (t) => {
  const { signIn, tokens, restart, scheduler, readTexts } = await open(t)
  scheduler.isShared = ({ collection, method }) => ['grants', 'event_inbox'].includes(collection) && method !== 'next'
  const end = async () => await tokens.endGrant('bound 1')
  await exhaust({ least: 14, outcomes: ['session.ended bound 1'] }, async (choose) => {
    await signIn()
    await scheduler.run({ one: end, other: end }, choose)
    await restart()
    return (await readTexts()).join()
  })
})

t.test('two calls at once, and the relay at any moment: one event for each end, in random orders', async (t) => {
  const { signIn, tokens, restart, scheduler, countBound, readTexts } = await open(t)
  const end = async () => await tokens.endSignIn(UID)
  await exhaust({ least: 48, most: 0, random: 60, outcomes: [ENDED.join()] }, async (choose) => {
    await signIn()
    await scheduler.run({ one: end, other: end, relay: restart }, choose)
    await restart()
    if (await countBound() > 0) t.fail('something is alive', { order: scheduler.order })
    return (await readTexts()).join()
  })
})

t.test('an end that cannot be finished keeps only its own event back', async (t) => {
  const { signIn, tokens, connect, readTexts, recorder, errors, countBound } = await open(t)
  await signIn()
  await recorder.end('grants', 'bound 1', 'since', { type: 'session.ended', id: 'bound 1' })
  await recorder.insert({ type: 'sign_in.succeeded', id: 'ann' })
  const failing = connect({ ends: { grants: async () => { throw new Error('no disk') } } })
  await failing.flush()
  await failing.close()
  t.strictSame(await readTexts(), ['sign_in.succeeded ann'])
  t.match(errors, [{ message: 'no disk' }])
  const relay = connect({ ends: tokens.ends })
  await relay.flush()
  t.strictSame(await readTexts(), ['session.ended bound 1', 'sign_in.succeeded ann'])
  t.equal(await countBound(), 1)
})
