import type { ServerResponse } from 'node:http'
import fastify from 'fastify'
import t, { type Test } from 'tap'
import { ACRS } from '../../lib/proofs.ts'
import type { GuardOptions } from '../../plugins/admission.ts'
import { remoteAuth } from '../../plugins/remote.ts'
import { startIdentity } from '../../testing/index.ts'
import { startUpstream } from '../helpers/upstream.ts'

const ORDERS = { id: 'https://api.example/orders', name: 'Orders', scopes: { 'orders:pay': 'pay your orders' } }
const ISSUER = 'https://id.example'
const MINUTE = 60_000

const AGAIN = 'the user must sign in again, or in another way, for this'
const UNSAID = 'the access token does not say how its user has signed in'
const challenge = (parameters: string, text = AGAIN) => `Bearer error="insufficient_user_authentication", error_description="${text}", ${parameters}`

const RULES = {
  strong: { acr: 'mfa' },
  passkey: { acr: 'phr' },
  recent: { maxAge: 300 },
  both: { acr: 'mfa', maxAge: 300 },
  any: { acr: '1' },
  clients: { acr: '1', subject: 'any' }
} as const satisfies Record<string, GuardOptions>

/** The same routes in the app of the service, and in one that asks it. */
async function open (t: Test) {
  const kit = await startIdentity({ t, resources: [ORDERS], oidc: { issuer: ISSUER } })
  const remote = fastify()
  t.teardown(async () => { await remote.close() })
  for (const [name, rule] of Object.entries(RULES)) kit.app.get(`/${name}`, { onRequest: kit.app.identity.guard(rule) }, ({ caller }) => caller)
  const { url } = await kit.listen()
  await remote.register(remoteAuth, { upstream: url, cacheTtl: 0 })
  for (const [name, rule] of Object.entries(RULES)) remote.get(`/${name}`, { onRequest: remote.identity.guard(rule) }, ({ caller }) => caller)
  async function ask (path: string, headers: Record<string, string>) {
    const replies = await Promise.all([kit.app, remote].map(async (app) => await app.inject({ url: `/${path}`, headers })))
    return replies.map((reply) => ({ status: reply.statusCode, challenge: reply.headers['www-authenticate'], body: reply.json() }))
  }
  return { kit, ask }
}

t.test('who passes a guard that asks for a strength, here and in an app that asks the service', async (t) => {
  const { kit, ask } = await open(t)
  const tokens = Object.fromEntries(await Promise.all(ACRS.map(async (acr) => [acr, (await kit.mint({ user: 'ann', acr })).headers])))
  const REFUSED: Record<keyof typeof RULES, string> = {
    strong: 'acr_values="mfa"', passkey: 'acr_values="phr"', recent: 'max_age="300"', both: 'acr_values="mfa", max_age="300"', any: 'acr_values="1"', clients: 'acr_values="1"'
  }
  const ENOUGH: Record<keyof typeof RULES, string[]> = {
    strong: ['mfa', 'phr'], passkey: ['phr'], recent: ['1', 'mfa', 'phr'], both: ['mfa', 'phr'], any: ['1', 'mfa', 'phr'], clients: ['1', 'mfa', 'phr']
  }
  async function check (enough: typeof ENOUGH, when: string) {
    for (const [path, expected] of Object.entries(REFUSED) as [keyof typeof RULES, string][]) {
      for (const acr of ACRS) {
        const isEnough = enough[path].includes(acr)
        const refusal = { status: 401, challenge: challenge(expected), body: { code: 'ErrUnknown', message: AGAIN } }
        for (const reply of await ask(path, tokens[acr])) t.match(reply, isEnough ? { status: 200, body: { auth: { acr } } } : refusal, `${path}, ${acr}, ${when}`)
      }
    }
  }
  await check(ENOUGH, 'now')
  kit.clock.advance(4 * MINUTE)
  await check(ENOUGH, 'after four minutes')
  kit.clock.advance(2 * MINUTE)
  await check({ ...ENOUGH, recent: [], both: [] }, 'after six minutes')
})

t.test('what comes from no sign-in is refused, whatever its power', async (t) => {
  const { kit, ask } = await open(t)
  const admin = await kit.mint({ user: 'root', roles: ['admin'] })
  const narrowed = await kit.mint({ user: 'root', scopes: [] })
  const { clientId, clientSecret } = await (async () => {
    const { clients } = kit.app.identity
    const owner = { user_id: admin.user_id, isAdmin: true }
    const { clientId } = await clients.create({ data: { redirectUris: [], scopes: ['own'], name: 'job', grants: ['client'] }, credentials: true }, owner)
    return await clients.require(clientId, owner)
  })()
  const { access_token } = (await kit.inject({
    method: 'POST',
    url: '/api/v1/auth/token',
    headers: { 'content-type': 'application/x-www-form-urlencoded', authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}` },
    payload: 'grant_type=client_credentials'
  })).json()
  for (const [name, path, headers] of [
    ['an operator\'s token', 'any', admin.headers],
    ['an operator\'s token, at an age', 'recent', admin.headers],
    ['a narrowed one', 'any', narrowed.headers],
    ['a client that acts for itself', 'clients', { authorization: `Bearer ${access_token}` }]
  ] as const) {
    for (const reply of await ask(path, headers)) {
      t.match(reply, { status: 401, challenge: challenge(path === 'recent' ? 'max_age="300"' : 'acr_values="1"', UNSAID) }, name)
      t.notOk('auth' in reply.body)
    }
  }
})

t.test('the strength is asked for last: nobody signs in again for what they may not do', async (t) => {
  const kit = await startIdentity({ t, resources: [ORDERS], oidc: { issuer: ISSUER } })
  kit.app.get('/clerks', { onRequest: kit.app.identity.guard({ roles: ['clerk'], acr: 'mfa' }) }, () => ({}))
  kit.app.get('/pay', { onRequest: kit.app.identity.protect({ resource: ORDERS.id, scopes: ['orders:pay'], acr: 'mfa', maxAge: 60 }) }, () => ({}))
  const ask = async (url: string, headers: Record<string, string>) => {
    const reply = await kit.inject({ url, headers })
    return { status: reply.statusCode, challenge: reply.headers['www-authenticate'] }
  }
  t.match(await ask('/clerks', (await kit.mint({ user: 'ann', acr: '1' })).headers), { status: 403 })
  t.match(await ask('/clerks', (await kit.mint({ user: 'ann', roles: ['clerk'], acr: '1' })).headers), { status: 401, challenge: challenge('acr_values="mfa"') })
  const client = 'payer'
  const narrow = await kit.mint({ user: 'ann', client, scopes: ['orders:pay'], resource: ORDERS.id, acr: '1' })
  t.match(await ask('/pay', narrow.headers), {
    status: 401,
    challenge: challenge('acr_values="mfa", max_age="60", resource_metadata="https://api.example/.well-known/oauth-protected-resource/orders", scope="orders:pay"')
  })
  t.match(await ask('/pay', (await kit.mint({ user: 'ann', client, scopes: ['orders:pay'], resource: ORDERS.id, acr: 'mfa' })).headers), { status: 200 })
})

t.test('a service of a release that does not say how its users sign in, or says it in words of its own', async (t) => {
  const info = { user_id: 'u1', account: 'ann', name: 'Ann', roles: {}, client_id: 'c1', scopes: [] }
  const now = Math.floor(Date.now() / 1000)
  const answers: Record<string, [object, { strong: number, any: number, recent: number }]> = {
    old: [info, { strong: 401, any: 401, recent: 401 }],
    'without a time': [{ ...info, acr: 'mfa' }, { strong: 401, any: 401, recent: 401 }],
    'without a class': [{ ...info, auth_time: now }, { strong: 401, any: 401, recent: 401 }],
    'of a later release': [{ ...info, acr: 'phrh', amr: ['hwk'], auth_time: now }, { strong: 401, any: 200, recent: 200 }],
    'with a class of the wrong type': [{ ...info, acr: 2, auth_time: now }, { strong: 503, any: 503, recent: 503 }],
    'with a time that cannot be': [{ ...info, acr: 'mfa', auth_time: 1e15 }, { strong: 503, any: 503, recent: 503 }],
    good: [{ ...info, acr: 'mfa', auth_time: now }, { strong: 200, any: 200, recent: 200 }]
  }
  for (const [name, [data, expected]] of Object.entries(answers)) {
    const { url } = await startUpstream(t, async (response: ServerResponse) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }))
    })
    const host = fastify()
    t.teardown(async () => { await host.close() })
    await host.register(remoteAuth, { upstream: url })
    host.get('/plain', { onRequest: host.identity.guard() }, () => ({}))
    for (const path of Object.keys(expected)) host.get(`/${path}`, { onRequest: host.identity.guard(RULES[path as keyof typeof expected]) }, () => ({}))
    for (const [path, status] of Object.entries(expected)) {
      t.equal((await host.inject({ url: `/${path}`, headers: { authorization: 'Bearer abc' } })).statusCode, status, `${name}: ${path}`)
    }
    t.equal((await host.inject({ url: '/plain', headers: { authorization: 'Bearer abc' } })).statusCode, expected.strong === 503 ? 503 : 200, `${name}: without a demand`)
  }
})

t.test('a wrong demand is refused at boot', async (t) => {
  const kit = await startIdentity({ t })
  const { guard } = kit.app.identity
  for (const [rule, message] of [
    [{ acr: 'mfaa' as 'mfa' }, 'guard: acr must be one of 1, mfa, phr'],
    [{ acr: 1 as unknown as '1' }, 'guard: acr must be one of 1, mfa, phr'],
    [{ maxAge: 0 }, 'guard: maxAge must be a whole number of seconds, at least 1'],
    [{ maxAge: -1 }, 'guard: maxAge must be a whole number of seconds, at least 1'],
    [{ maxAge: 1.5 }, 'guard: maxAge must be a whole number of seconds, at least 1'],
    [{ maxAge: '300' as unknown as number }, 'guard: maxAge must be a whole number of seconds, at least 1']
  ] as const) t.throws(() => guard(rule), { message })
})
