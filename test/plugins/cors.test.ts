import t from 'tap'
import { createApp, startIdentity } from '../../testing/kit.ts'

const ORIGIN = 'https://spa.example'
const preflight = { origin: ORIGIN, 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' }

t.test('pages of any origin may ask about the token they have', async (t) => {
  const kit = await startIdentity({ t })
  const { headers } = await kit.mint()
  for (const [method, path, methods] of [['GET', 'tokeninfo', 'GET'], ['GET', 'sessions', 'GET, DELETE'], ['POST', 'logout', 'POST']] as const) {
    const asked = await kit.inject({ method: 'OPTIONS', url: `/api/v1/auth/${path}`, headers: preflight })
    t.equal(asked.statusCode, 204, `${path}: without a token`)
    t.match(asked.headers, {
      'access-control-allow-origin': '*', 'access-control-allow-methods': methods, 'access-control-allow-headers': 'authorization, content-type'
    })
    t.notOk('access-control-allow-credentials' in asked.headers, 'no cookie is ever let in')
    const refused = await kit.inject({ method, url: `/api/v1/auth/${path}`, headers: { origin: ORIGIN } })
    t.equal(refused.statusCode, 401)
    t.equal(refused.headers['access-control-allow-origin'], '*', 'a refusal can be read too')
    t.match(refused.headers['access-control-expose-headers'], 'WWW-Authenticate')
    const given = await kit.inject({ method, url: `/api/v1/auth/${path}`, headers: { ...headers, origin: ORIGIN } })
    t.ok(given.statusCode < 300, `${path} ${given.statusCode}`)
    t.equal(given.headers['access-control-allow-origin'], '*')
  }
})

t.test('the rest of the API is not for pages elsewhere', async (t) => {
  const kit = await startIdentity({ t })
  const { headers } = await kit.mint({ roles: ['admin'] })
  for (const url of ['/api/v1/client/list', '/api/v1/user/list', '/api/v1/user/count']) {
    t.equal((await kit.inject({ method: 'OPTIONS', url, headers: preflight })).statusCode, 404)
    t.notOk('access-control-allow-origin' in (await kit.inject({ url, headers: { ...headers, origin: ORIGIN } })).headers)
  }
})

t.test('a page of any origin may read and change the profile of its user, and not create users', async (t) => {
  const kit = await startIdentity({ t })
  const { headers } = await kit.mint({ user: 'ann', roles: ['admin'] })
  const send = (method: 'GET' | 'PATCH' | 'POST' | 'OPTIONS', payload?: object) =>
    kit.inject({ method, url: '/api/v1/user', headers: method === 'OPTIONS' ? preflight : { ...headers, origin: ORIGIN }, ...(payload && { payload }) })
  t.equal((await send('OPTIONS')).headers['access-control-allow-methods'], 'GET, PATCH')
  for (const reply of [await send('GET'), await send('PATCH', { data: { name: 'Ann' } }), await send('PATCH', {})]) t.equal(reply.headers['access-control-allow-origin'], '*')
  t.notOk('access-control-allow-origin' in (await send('POST', { data: { account: 'b', password: 'a long password' } })).headers)
})

t.test('the host\'s own CORS headers take precedence', async (t) => {
  const app = createApp()
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('access-control-allow-origin', 'https://only.example')
    done()
  })
  const kit = await startIdentity({ t, app })
  for (const method of ['OPTIONS', 'GET'] as const) {
    const { headers } = await kit.inject({ method, url: '/api/v1/auth/tokeninfo', headers: preflight })
    t.equal(headers['access-control-allow-origin'], 'https://only.example')
    t.notOk('access-control-allow-headers' in headers || 'access-control-expose-headers' in headers)
  }
})
