import t, { type Test } from 'tap'
import type { startIdentity } from '../../testing/index.ts'
import { callAs } from '../helpers/people.ts'
import { eachStore } from '../oidc/harness.ts'

const SECOND = 1000
const STEP_UP = (acr: string) => ({ status: 401, body: { code: 'ErrUnknown' }, headers: { 'www-authenticate': new RegExp(`^Bearer error="insufficient_user_authentication", error_description="[^"]+", acr_values="${acr}", max_age="600"$`) } })
const REQUIRED = { status: 400, body: { code: 'ErrParam', message: 'current_password: is required with a new password' } }
const WRONG = { status: 400, body: { code: 'ErrParam', message: 'current_password: is wrong' } }
const DONE = { status: 204 }

const SECURITY = ['account:read', 'account:write', 'account:security']
const PASSWORD = 'the first password'

type Request = Parameters<Awaited<ReturnType<typeof startIdentity>>['mint']>[0]

/** A person for each try, with a token, and the three operations that ask for proof. */
async function open (kit: Awaited<ReturnType<typeof startIdentity>>, { kind, token, wait = 0 }: { kind: 'password' | 'none' | 'factor', token: NonNullable<Request>, wait?: number }) {
  const { users, ways, store } = kit.app.identity
  const { user_id, account } = await kit.mint()
  if (kind !== 'none') await users.patch(user_id, { data: { password: PASSWORD } }, { user_id: 'operator', isAdmin: true })
  const { epoch } = (await store.collection<{ id: string, epoch: number }>('users').get(user_id))!
  if (kind === 'factor') await ways.add({ user_id, epoch }, { kind: 'totp', material: { sealed: 's', step: 0 } })
  const minted = await kit.mint({ user: user_id, ...token })
  kit.clock.advance(wait * SECOND)
  const api = callAs(kit, minted.headers)
  return {
    account,
    api,
    password: async (current_password?: string) => await api.patch('/user', { data: { password: 'another password', ...(current_password !== undefined && { current_password }) } }),
    address: async (current_password?: string) => await api.post('/user/email', { data: { email: `${account}@example.com`, ...(current_password !== undefined && { current_password }) } }),
    deletion: async (current_password?: string) => await api.send({ method: 'DELETE', url: '/user', payload: { data: { ...(current_password !== undefined && { current_password }) } } })
  }
}

const OPERATIONS = ['password', 'address', 'deletion'] as const

eachStore(t, 'the proof that an operation asks for', async (t, start) => {
  const { kit } = await start({ selfDelete: true, oidc: { issuer: 'https://id.example' }, passwordMin: 1 })
  const check = async (t: Test, name: string, as: Parameters<typeof open>[1], current: string | undefined, expected: object) => {
    for (const operation of OPERATIONS) t.match(await (await open(kit, as))[operation](current), expected, `${operation}: ${name}`)
  }

  await t.test('a person with a password, whose token comes from no sign-in: as before', async (t) => {
    const as = { kind: 'password', token: { scopes: SECURITY } } as const
    await check(t, 'nothing', as, undefined, REQUIRED)
    await check(t, 'a wrong one', as, 'wrong', WRONG)
    await check(t, 'the right one', as, PASSWORD, DONE)
    await check(t, 'an operator\'s unrestricted token', { kind: 'password', token: {} }, undefined, DONE)
    await check(t, 'and a wrong one', { kind: 'password', token: {} }, 'wrong', WRONG)
  })

  await t.test('a fresh sign-in stands for the password, for ten minutes', async (t) => {
    const token = { scopes: SECURITY, acr: '1' } as const
    await check(t, 'at once', { kind: 'password', token }, undefined, DONE)
    await check(t, 'after ten minutes', { kind: 'password', token, wait: 600 }, undefined, DONE)
    await check(t, 'a second later', { kind: 'password', token, wait: 601 }, undefined, REQUIRED)
    await check(t, 'a second later, with the password', { kind: 'password', token, wait: 601 }, PASSWORD, DONE)
    await check(t, 'a password that is given is compared', { kind: 'password', token }, 'wrong', WRONG)
  })

  await t.test('an app that may change the profile cannot take over the account by a fresh sign-in', async (t) => {
    const token = { scopes: ['account:write'], acr: 'phr' as const }
    t.match(await (await open(kit, { kind: 'password', token })).password(), REQUIRED)
    t.match(await (await open(kit, { kind: 'password', token })).password(PASSWORD), DONE)
    for (const kind of ['none', 'factor'] as const) {
      t.match(await (await open(kit, { kind, token })).password(), { status: 403, headers: { 'www-authenticate': 'Bearer error="insufficient_scope", scope="account:security"' } }, kind)
    }
  })

  await t.test('a person without a password signs in again', async (t) => {
    await check(t, 'nothing', { kind: 'none', token: { scopes: SECURITY } }, undefined, STEP_UP('1'))
    for (const current of ['anything', '']) await check(t, `"${current}"`, { kind: 'none', token: { scopes: SECURITY } }, current, WRONG)
    await check(t, 'too old', { kind: 'none', token: { scopes: SECURITY, acr: 'phr' }, wait: 601 }, undefined, STEP_UP('1'))
    await check(t, 'fresh', { kind: 'none', token: { scopes: SECURITY, acr: '1' } }, undefined, DONE)
    await check(t, 'an operator\'s token', { kind: 'none', token: {} }, undefined, DONE)
  })

  await t.test('the password alone confirms nothing for a person with a factor', async (t) => {
    for (const token of [{ scopes: SECURITY }, { scopes: SECURITY, acr: '1' }] as const) {
      await check(t, 'nothing', { kind: 'factor', token }, undefined, STEP_UP('mfa'))
      await check(t, 'the right one', { kind: 'factor', token }, PASSWORD, STEP_UP('mfa'))
      await check(t, 'a wrong one', { kind: 'factor', token }, 'wrong', WRONG)
    }
    for (const acr of ['mfa', 'phr'] as const) {
      await check(t, acr, { kind: 'factor', token: { scopes: SECURITY, acr } }, undefined, DONE)
      await check(t, `${acr}, too old`, { kind: 'factor', token: { scopes: SECURITY, acr }, wait: 601 }, PASSWORD, STEP_UP('mfa'))
    }
    await check(t, 'an operator\'s token', { kind: 'factor', token: {} }, undefined, DONE)
  })

  await t.test('a new password by a fresh sign-in revokes all tokens, as any', async (t) => {
    const { account, api, password } = await open(kit, { kind: 'password', token: { scopes: SECURITY, acr: '1' } })
    const other = await kit.mint({ user: account })
    t.match(await password(), DONE)
    t.match(await api.get('/auth/tokeninfo'), { status: 401 })
    t.match(await callAs(kit, other.headers).get('/auth/tokeninfo'), { status: 401 })
    t.ok(await kit.app.identity.users.verify(account, 'another password'))
  })
})
