import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import { eachStore } from '../oidc/harness.ts'
import type { Browser } from '../oidc/browser.ts'
import { answerOf, leave, readError, through } from './through.ts'

const START = '/api/v1/auth/upstream/test'
const OVER = /This sign-in has expired/

t.setTimeout(120_000)

/** How far a sign-in has come when the sessions end, and how it goes on. */
const STAGES: Record<string, (browser: Browser) => Promise<() => Promise<string>>> = {
  async 'was sent to the provider' (browser) {
    const left = await leave(browser, START)
    return async () => readError(await browser.open(await answerOf(left)))
  },
  async 'has its answer' (browser) {
    const answer = await answerOf(await leave(browser, START))
    return async () => readError(await browser.open(answer))
  },
  async 'has brought it' (browser) {
    const response = await browser.fetch(await answerOf(await leave(browser, START)))
    return async () => readError(await browser.open(response.headers.get('location')!))
  }
}

eachStore(t, 'what was proved before an end of sessions does not finish after it', async (t, start) => {
  const harness = await start({ signUp: true, upstream: { link: 'verified' } })
  const { kit } = harness
  const { users, tokenSessions, store } = kit.app.identity
  const sign = async () => {
    return readError(await through(harness.browser(), START))
  }
  const ENDS: Record<string, (id: string) => Promise<unknown>> = {
    'all sessions end': async (id) => await tokenSessions.end(id),
    'there is a new password': async (id) => await users.patch(id, { data: { password: 'another password' } }, { user_id: '', isAdmin: true })
  }
  kit.upstream({ sub: 'zed', email: 'zed@example.org', email_verified: true })
  t.match(await sign(), /no error: Profile/)
  const { id } = (await store.collection('users').getBy('account', 'zed@example.org'))!

  for (const [stage, begin] of Object.entries(STAGES)) {
    for (const [name, end] of Object.entries(ENDS)) {
      await t.test(`a browser that ${stage} when ${name}`, async (t) => {
        const finish = await begin(harness.browser())
        kit.clock.advance(1)
        await end(id)
        t.match(await finish(), OVER)
        kit.clock.advance(1000)
        t.match(await sign(), /no error: Profile/, 'and who begins again signs in')
      })
    }
  }

  await t.test('nor does an identity join by itself, in either order', async (t) => {
    const browser = harness.browser()
    const joiner = await users.create({ data: { account: 'joe@example.org', password: 'x' } })
    await store.collection('users').update(joiner.user_id, { set: { email: 'joe@example.org', email_verified_at: new Date(kit.clock.now()).toISOString(), addresses: ['joe@example.org'], operator_password: false } })
    kit.upstream({ sub: 'joe', email: 'joe@example.org', email_verified: true })
    const answer = await answerOf(await leave(browser, START))
    kit.clock.advance(1)
    await tokenSessions.end(joiner.user_id)
    t.match(readError(await browser.open(answer)), OVER)
    t.equal((await store.collection<UserRecord>('users').get(joiner.user_id))!.ways, undefined)
    kit.clock.advance(1)
    t.match(await sign(), /no error: Profile/)
  })
})
