import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import { createTestUpstream } from '../../testing/index.ts'
import { TEST_CLIENT } from '../../testing/upstream.ts'
import { startHarness } from '../oidc/harness.ts'
import { agree, answerOf, leave, readError } from './through.ts'

// Shapes of Google's ID tokens, written from its documentation.
t.test('Google', async (t) => {
  const provider = await createTestUpstream()
  t.teardown(provider.close)
  const settings = { kind: 'google' as const, issuer: provider.issuer, ...TEST_CLIENT, create: true }
  const { kit, browser: open } = await startHarness(t, {
    signUp: true, upstreams: [{ ...settings, id: 'google' }, { ...settings, id: 'workspace', clientId: TEST_CLIENT.clientId, domains: ['example.com'] }]
  })
  const users = kit.app.identity.store.collection<UserRecord>('users')
  const says = (sub: string, claims: object) => provider({
    sub, azp: TEST_CLIENT.clientId, at_hash: 'x', email_verified: true, name: 'Kim Lee', given_name: 'Kim', family_name: 'Lee', picture: 'https://lh3.googleusercontent.com/a/x', ...claims
  })
  const enter = async (id: string) => {
    const browser = open()
    const asked = await leave(browser, `/api/v1/auth/upstream/${id}`)
    // Google's answer has parameters of its own.
    const answer = new URL(await answerOf(asked))
    for (const [name, value] of Object.entries({ scope: 'openid email profile', authuser: '0', prompt: 'none' })) answer.searchParams.set(name, value)
    return { asked, page: await agree(await browser.open(answer.href)) }
  }

  says('110169484474386276334', { email: 'kim@gmail.com' })
  const { asked, page } = await enter('google')
  t.match(page.title, /Profile/, readError(page))
  t.match(Object.fromEntries(asked.searchParams), { scope: 'openid profile email', code_challenge_method: 'S256', response_type: 'code' })
  t.notOk(asked.searchParams.has('hd'))
  t.match(await users.getBy('account', 'kim@gmail.com'), { email_verified_at: String, name: 'Kim Lee' })

  says('110169484474386276335', { email: 'kim@corp.example', hd: 'corp.example' })
  t.match((await enter('google')).page.title, /Profile/, 'an organization whose mail Google runs')

  says('110169484474386276336', { email: 'kim@elsewhere.example' })
  const other = (await enter('google')).page
  t.equal(other.title, 'Create your account', 'an address elsewhere, whose owner may have changed')
  t.notMatch(other.text, /kim@elsewhere/)

  says('110169484474386276337', { email: 'lee@example.com', hd: 'example.com' })
  const own = await enter('workspace')
  t.equal(own.asked.searchParams.get('hd'), 'example.com', 'Google offers the accounts of the organization')
  t.match(own.page.title, /Profile/, readError(own.page))
  says('110169484474386276338', { email: 'lee@gmail.com' })
  t.match(readError((await enter('workspace')).page), /sign in here with your email address at this provider/, 'and what it then says is what counts')
  says('110169484474386276339', { email: 'lee@example.com' })
  t.match(readError((await enter('workspace')).page), /sign in here with your email address at this provider/, 'an address of the domain that is not of the organization')
})
