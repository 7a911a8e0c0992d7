import { generateKeySync } from 'node:crypto'
import fastify from 'fastify'
import t from 'tap'
import { createKnownBrowsers } from '../../lib/throttling/known-browsers.ts'
import { createBrowserCookies } from '../../plugins/known-browsers.ts'

const users = { listNames: async (id: string) => id === 'u' ? ['ann'] : [] }

t.test('the cookie is for https and this host only where the issuer is https', async (t) => {
  for (const [issuer, name, rest] of [
    ['https://id.example', '__Host-identity_known', '; Secure'],
    ['http://127.0.0.1:3000', 'identity_known', '']
  ] as const) {
    const app = fastify()
    t.teardown(() => app.close())
    const cookies = createBrowserCookies({ users, knownBrowsers: createKnownBrowsers({ keys: [generateKeySync('hmac', { length: 256 })], now: Date.now }) }, () => new URL(issuer))
    app.get('/set', async (request, reply) => {
      await cookies.remember(request, reply, { accountId: 'u', user_epoch: 3 })
      return {}
    })
    app.get('/find', async (request) => ({ ...cookies.find(request, 'ANN') }))
    const { headers } = await app.inject('/set')
    const line = String(headers['set-cookie'])
    t.match(line, new RegExp(`^${name}=[\\w-]+\\.[\\w-]+; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax${rest}$`))
    const find = async (cookie: string) => (await app.inject({ url: '/find', headers: { cookie } })).json()
    const pair = line.slice(0, line.indexOf(';'))
    t.match(await find(`a=b; ${pair}; c`), { user_id: 'u', epoch: 3 })
    t.strictSame(await find(`x${pair}`), {})
    t.strictSame(await find('a=b'), {})
  }
})
