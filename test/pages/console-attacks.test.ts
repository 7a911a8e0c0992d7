import net from 'node:net'
import { randomBytes } from 'node:crypto'
import { getEventListeners } from 'node:events'
import t from 'tap'
import { watchConnection } from '../../plugins/connections.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { TEST_CLIENT } from '../../testing/upstream.ts'
import { createTestUpstream } from '../../testing/index.ts'
import type { Browser, Page } from '../oidc/browser.ts'
import { callAs } from '../helpers/people.ts'
import { API_SCOPES } from '../helpers/powers.ts'
import { type Harness, atLocalhost, eachStore } from '../oidc/harness.ts'
import { leave, through } from '../upstreams/through.ts'
import { addUser, enter, post, readXsrf } from './visits.ts'

const PATH = '/admin'
const MINUTE = 60_000
const OPERATOR = { user_id: '', isAdmin: true }
const ROLES = { console: { path: PATH }, roles: { support: 'support' } }

const isSignedOut = (page: Page) => new URL(page.response.url).pathname === '/account/sign-in'
const isOpen = (page: Page) => page.response.status === 200 && page.text.includes('class="own console"')
const readCookie = (tab: Browser) => tab.cookies().find((value) => value.startsWith('v1.')) ?? ''
/** A browser that has stolen the cookie, and nothing else. */
const openWith = async ({ browser }: Harness, cookie: string, path = PATH) => await browser().open(path, { headers: { cookie: `identity_console=${cookie}` } })

/** Somebody with a role. */
async function addStaff (harness: Harness, account: string, role: string) {
  const who = await addUser(harness, account)
  await harness.kit.app.identity.users.patch(who.user_id, { data: { roles: { [role]: true } } }, OPERATOR)
  return who
}

async function waitFor (isDone: () => boolean): Promise<void> {
  for (let left = 500; !isDone() && left > 0; left--) await new Promise((resolve) => setTimeout(resolve, 10))
}

/** A request as it is, which no client has normalized. */
async function sendRaw ({ url }: Harness, path: string, cookie: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = net.connect(Number(port), hostname)
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAccept: text/html\r\nConnection: close\r\nCookie: identity_console=${cookie}\r\n\r\n`)
  let text = ''
  for await (const chunk of socket) {
    text += String(chunk)
    if (text.includes('\r\n')) break
  }
  return text
}

eachStore(t, 'attacks on the session of the console', async (t, start) => {
  const harness = await start(ROLES)
  const { kit, user, browser } = harness
  const boss = await addStaff(harness, 'boss@example.com', 'admin')

  await t.test('the sign-in leads to a page of the console, and nowhere else', async (t) => {
    const tab = browser()
    await enter(harness, PATH, tab, boss)
    const hostile = [
      'console/\u4e2d', 'console/\u0001', 'console/a\r\nset-cookie:x=1', 'console/..', 'console/%2e%2E/x', 'console/./x', 'console/.%2e', 'console/../../x', 'console/%',
      'console/%zz', 'console/a;\u202e', `console/${'a'.repeat(701)}`, 'console/a/b/c/d/e'
    ]
    for (const next of hostile) {
      const { status, headers } = await tab.fetch(`/account/sign-in?next=${encodeURIComponent(next)}`)
      t.strictSame([status, headers.get('location')], [303, '/account'], JSON.stringify(next))
    }
    for (const path of ['', '/people/..x', '/people/%C3%BC', '/clients/https%3A%2F%2Fapp.example%2Fa/token', '/clients/document:x']) {
      const { headers } = await tab.fetch(`/account/sign-in?next=${encodeURIComponent(`console${path}`)}`)
      t.equal(headers.get('location'), PATH + path)
    }
  })

  await t.test('a sign-in ends the cookies of before, so that it makes none of them fresh', async (t) => {
    const tab = browser()
    await enter(harness, PATH, tab, boss)
    const stolen = readCookie(tab)
    t.ok(isOpen(await openWith(harness, stolen)))
    kit.clock.advance(11 * MINUTE)
    const form = await tab.open('/account/sign-in?next=console')
    const again = await post(form, form.response.url, { account: boss.account, password: boss.password })
    t.ok(isOpen(again), 'who has signed in goes on')
    t.not(readCookie(tab), stolen)
    t.ok(isSignedOut(await openWith(harness, stolen)))
    const out = readCookie(tab)
    await post(await tab.open('/account'), '/account/sign-out')
    t.ok(isSignedOut(await openWith(harness, out)), 'so does a sign-out at the pages of the account')
  })

  await t.test('somebody else who signs in in this browser has nothing of it', async (t) => {
    const tab = browser()
    const page = await enter(harness, `${PATH}/clients`, tab, boss)
    const cookie = readCookie(tab)
    const fields = { xsrf: readXsrf(page), form_id: randomBytes(16).toString('base64url'), action: 'create', name: 'Kept', redirectUris: 'https://a.example/cb', scopes: 'a', confidential: 'yes' }
    const made = await post(page, `${PATH}/clients`, fields)
    t.match(made.text, 'class="secret-shown"')
    await post(await tab.open('/account'), '/account/sign-out')
    await enter(harness, '/account', tab)
    t.ok(isSignedOut(await openWith(harness, cookie)))
    const repeated = await post(page, `${PATH}/clients`, fields)
    t.notMatch(repeated.text, 'class="secret-shown"', 'nor has the answer to a form that is sent again')
    t.equal((await tab.open(PATH)).response.status, 403)
  })

  await t.test('a cookie that was altered, or made for something else, opens nothing', async (t) => {
    const tab = browser()
    await enter(harness, PATH, tab, boss)
    const cookie = readCookie(tab)
    for (const value of [cookie.slice(0, -1), `${cookie}A`, cookie.replace('v1.', 'v2.'), 'v1.', 'x'.repeat(8000), cookie.slice(3), `"${cookie}"`]) {
      t.ok(isSignedOut(await openWith(harness, value)), value.slice(0, 16))
    }
    const { headers, status } = await tab.fetch(PATH, { method: 'HEAD', headers: { cookie: '' } })
    t.strictSame([status, headers.getSetCookie().filter((line) => line.startsWith('identity_console'))], [303, []])
  })

  await t.test('HEAD does not enter', async (t) => {
    const tab = browser()
    await enter(harness, '/account', tab, boss)
    const { status, headers } = await tab.fetch(PATH, { method: 'HEAD' })
    t.equal(status, 303)
    t.strictSame(headers.getSetCookie(), [])
  })

  await t.test('a form from elsewhere does nothing', async (t) => {
    const tab = browser()
    const to = `${PATH}/people/${user.user_id}`
    const page = await enter(harness, to, tab, boss)
    const other = await enter(harness, to, browser(), boss)
    const send = async (fields: Record<string, string>, headers: Record<string, string> = {}) => (await post(page, to, { action: 'disable', ...fields }, headers)).response.status
    t.equal(await send({}, { origin: 'null' }), 403)
    t.equal(await send({}, { origin: 'https://evil.example' }), 403)
    t.equal(await send({}, { origin: tab.origin.replace(/\d+$/, '1') }), 403)
    t.equal(await send({ xsrf: '' }), 400)
    t.equal(await send({ xsrf: readXsrf(other) }), 400)
    for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x']) t.equal(await send({}, { 'content-type': type }), 415)
    t.equal(await send({ action: 'constructor' }), 404)
    t.equal(await send({ action: '__proto__' }), 404)
    t.equal(await send({ name: 'x'.repeat(200_000) }), 413)
    t.equal((await kit.app.identity.users.read(user.user_id, OPERATOR, { fields: 'disabled' })).disabled_at, null)
  })
})

eachStore(t, 'attacks on the pages of the console', async (t, start) => {
  const harness = await start(ROLES)
  const { kit, user, browser } = harness
  const { users, clients } = kit.app.identity
  const boss = await addStaff(harness, 'boss@example.com', 'admin')
  const helper = await addStaff(harness, 'helper@example.com', 'support')
  const tab = browser()
  await enter(harness, PATH, tab, boss)

  await t.test('an id leads to no other operation of the API', async (t) => {
    const cookie = readCookie(tab)
    for (const id of ['list', 'count', 'invite', '..', '.', '%2e%2e', '%2E', 'a%2Fsessions', '%00', '%3Fx', '%23', encodeURIComponent('\u202e'), encodeURIComponent('..\\'), 'a'.repeat(129)]) {
      for (const [start, end] of [['/people/', ''], ['/clients/', ''], ['/clients/', '/token?user_id=x']]) {
        const [line = ''] = (await sendRaw(harness, `${PATH}${start}${id}${end}`, cookie)).split('\r\n')
        t.match(line, /^HTTP\/1\.1 40[04] /, `${start}${id.slice(0, 20)}${end}`)
      }
    }
    const page = await tab.open(`${PATH}/people/${user.user_id}`)
    for (const id of ['.', '..']) {
      for (const [action, field] of [['end', 'session'], ['disconnect', 'identity']] as const) {
        const sent = await post(page, `${PATH}/people/${user.user_id}`, { action, [field]: id })
        t.equal(sent.response.status, 404)
        t.match(sent.text, 'dot segment')
      }
    }
  })

  await t.test('a time zone that there is not', async (t) => {
    for (const zone of ['%FF', '%', '%2', '%00', '__proto__', 'x'.repeat(3000), 'Europe%2FBerlin']) {
      const page = await browser().open(PATH, { headers: { cookie: `identity_console=${readCookie(tab)}; identity_zone=${zone}` } })
      t.ok(isOpen(page), zone.slice(0, 20))
    }
  })

  await t.test('the events of a call name the request of its page', async (t) => {
    await enter(harness, `${PATH}/people/${user.user_id}`, browser(), helper)
    await kit.flush()
    const [entered] = await kit.events.list({ type: 'console.entered', user: helper.user_id })
    const [viewed] = await kit.events.list({ type: 'user.viewed', user: user.user_id })
    t.type(entered?.request_id, 'string')
    t.equal(viewed?.request_id, entered?.request_id)
    await enter(harness, `${PATH}/people/${user.user_id}`, browser(), helper)
    await kit.flush()
    t.equal((await kit.events.list({ type: 'user.viewed', user: user.user_id })).length, 1, 'once an hour, as by the API')
  })

  await t.test('support staff do no more than by the API', async (t) => {
    const seen = await enter(harness, `${PATH}/people/${user.user_id}`, browser(), helper)
    const api = callAs(kit, (await kit.mint({ user: helper.user_id, scopes: API_SCOPES })).headers)
    const send = async (id: string, fields: Record<string, string>) => (await post(seen, `${PATH}/people/${id}`, fields)).response.status
    for (const action of ['roles', 'remove', 'profile', 'disable', 'attributes']) {
      const status = await send(user.user_id, { action, roles: '{"admin":true}', typed: user.account, name: 'x', attributes: '{}' })
      t.ok(status === 403 || status === 404, `${action} ${status}`)
    }
    for (const id of [boss.user_id, helper.user_id]) {
      for (const action of ['recover', 'reset', 'unlock', 'end-all']) {
        const status = await send(id, { action })
        const path = { recover: 'recovery', reset: 'factors/reset', unlock: 'unlock', 'end-all': 'sessions' }[action]
        const { status: statusCode } = await api.send({ method: action === 'end-all' ? 'DELETE' : 'POST', url: `/user/${id}/${path}` })
        t.equal(status < 400, statusCode < 400, `${action} on ${id === boss.user_id ? 'an administrator' : 'themselves'}: ${status} ${statusCode}`)
        if (!isOpen(await seen.browser.open(PATH))) await enter(harness, PATH, seen.browser, helper)
      }
    }
    t.strictSame((await users.read(user.user_id, OPERATOR)).roles, {})
    t.equal((await seen.browser.open(`${PATH}/settings`)).response.status, 404)
    t.equal((await seen.browser.open(`${PATH}/clients`)).response.status, 404)
  })

  await t.test('who is demoted between the page and its call does nothing', async (t) => {
    const other = await addStaff(harness, 'other@example.com', 'admin')
    const page = await enter(harness, `${PATH}/clients`, browser(), other)
    const { patch } = users
    let isDemoted = false
    Object.assign(users, {
      patch: async (...given: Parameters<typeof patch>) => {
        if (!isDemoted) {
          isDemoted = true
          await patch(other.user_id, { data: { roles: {} } }, OPERATOR)
        }
        return await patch(...given)
      }
    })
    const sent = await post(page, `${PATH}/people/${user.user_id}`, { action: 'roles', roles: '{"admin":true}' })
    Object.assign(users, { patch })
    t.ok(isDemoted)
    t.notOk(isOpen(sent))
    t.notOk((await users.read(user.user_id, OPERATOR)).roles.admin)
  })

  await t.test('text from outside stays text', async (t) => {
    const name = '</pre></title><script>alert(1)</script>\u202e\u2066\u115f\u3164\ufe0f\u{e0041}"\'&'
    // As an earlier release has stored it.
    await kit.app.identity.store.collection<UserRecord>('users').update(user.user_id, { set: { name, attributes: { x: '</pre><img src=x onerror=alert(1)>\u2028' } } })
    const { text, response } = await tab.open(`${PATH}/people/${user.user_id}?done=%3Cb%3E&q=%22%3E%3Cb%3E`)
    t.notMatch(text, /<script|<img src=x|<b>|<\/pre><img/)
    t.notMatch(text.replaceAll(/value="[^"]*"|<textarea[^]*?<\/textarea>/g, ''), /[\u202e\u2066\u115f\u3164\u{e0041}]/u)
    for (const code of ['202E', '2066', '115F', '3164', 'E0041', '2028']) t.match(text, `U+${code}`)
    t.match(response.headers.get('content-security-policy'), /default-src 'none'.*form-action 'self'; frame-ancestors 'none'; base-uri 'none'/)
    t.equal(response.headers.get('referrer-policy'), 'same-origin')
    const wide = '\u5bbd'.repeat(256)
    await users.patch(user.user_id, { data: { name: wide, roles: Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`role${index}`, true])) } }, OPERATOR)
    t.match((await tab.open(`${PATH}/people/${user.user_id}`)).text, wide)
    await users.patch(user.user_id, { data: { name: 'Ann', roles: {} } }, OPERATOR)
  })

  await t.test('a connection that stays open holds nothing of the calls that were made for it', async (t) => {
    const { hostname, port } = new URL(harness.url)
    let signal: AbortSignal | undefined
    kit.app.server.once('connection', (socket: net.Socket) => { signal = watchConnection({ raw: { socket } } as Parameters<typeof watchConnection>[0]) })
    const socket = net.connect(Number(port), hostname)
    let text = ''
    socket.on('data', (chunk) => { text += String(chunk) })
    for (let count = 0; count < 3; count++) {
      text = ''
      socket.write(`GET ${PATH}/people/${user.user_id} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nCookie: identity_console=${readCookie(tab)}\r\n\r\n`)
      await waitFor(() => text.includes('</html>'))
      t.match(text, 'HTTP/1.1 200')
    }
    t.equal(getEventListeners(signal!, 'abort').length, 0)
    socket.destroy()
  })

  await t.test('a call ends with the connection of its page', async (t) => {
    const page = await tab.open(`${PATH}/clients`)
    const { create } = clients
    let signal: AbortSignal | undefined
    const { promise, resolve } = Promise.withResolvers<void>()
    Object.assign(clients, {
      create: async (...given: Parameters<typeof create>) => {
        signal = given[1].signal
        await promise
        return await create(...given)
      }
    })
    const body = new URLSearchParams({ xsrf: readXsrf(page), action: 'create', name: 'Left', redirectUris: 'https://a.example/cb', scopes: 'a' }).toString()
    const { hostname, port, host } = new URL(harness.url)
    const socket = net.connect(Number(port), hostname)
    socket.write(`POST ${PATH}/clients HTTP/1.1\r\nHost: ${host}\r\nCookie: identity_console=${readCookie(tab)}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    await waitFor(() => signal !== undefined)
    t.equal(signal?.aborted, false)
    socket.destroy()
    await waitFor(() => signal?.aborted === true)
    t.equal(signal?.aborted, true)
    resolve()
    Object.assign(clients, { create })
  })
})

eachStore(t, 'the console from outside its networks', async (t, start) => {
  const harness = await start({ console: { path: PATH, adminNetworks: ['10.0.0.0/8', '2001:db8::/32'] } })
  const { kit, browser } = harness
  const boss = await addStaff(harness, 'boss@example.com', 'admin')

  await t.test('it is an unknown path of the host', async (t) => {
    const ask = async (path: string, method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'OPTIONS', headers: Record<string, string>) => {
      const { statusCode, headers: { date: _date, ...rest }, body } = await kit.app.inject({ method, url: path, headers, ...(method === 'POST' && { payload: 'a=b' }) })
      return { statusCode, headers: rest, body: body.replaceAll(/req-\w+/g, '').replaceAll(path, '/path') }
    }
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'OPTIONS'] as const) {
      for (const headers of [{ accept: 'text/html' }, { accept: 'application/json' }, { 'content-type': 'application/x-www-form-urlencoded' }] as Record<string, string>[]) {
        for (const path of ['', '/', '/people', '/people/x?lang=de', '/nothing']) {
          t.strictSame(await ask(`${PATH}${path}`, method, headers), await ask(`/nimda${path}`, method, headers), `${method} ${path} ${JSON.stringify(headers)}`)
        }
      }
    }
  })

  await t.test('the address is that of the connection', async (t) => {
    const ask = async (remoteAddress: string, headers: Record<string, string> = {}) => (await kit.app.inject({ url: PATH, remoteAddress, headers })).statusCode
    for (const near of ['10.1.2.3', '::ffff:10.1.2.3', '2001:db8::1']) t.equal(await ask(near), 303, near)
    for (const far of ['11.0.0.1', '::ffff:11.0.0.1', '2001:db9::1', '::1', '::10.0.0.1']) t.equal(await ask(far), 404, far)
    t.equal(await ask('11.0.0.1', { 'x-forwarded-for': '10.0.0.1', forwarded: 'for=10.0.0.1', 'x-real-ip': '10.0.0.1' }), 404)
  })

  await t.test('the sign-in page knows nothing of it', async (t) => {
    for (const who of [harness.user, boss]) {
      const tab = browser()
      const form = await tab.open('/account/sign-in?next=console')
      const { headers } = await tab.fetch('/account/sign-in?next=console', {
        method: 'POST', body: new URLSearchParams({ xsrf: readXsrf(form), account: who.account, password: who.password }), headers: { origin: tab.origin }
      })
      t.equal(headers.get('location'), '/account/console')
      t.equal((await tab.fetch('/account/sign-in?next=console/people')).headers.get('location'), '/account/console/people')
    }
  })
})

eachStore(t, 'the console and other providers', async (t, start) => {
  const wide = await createTestUpstream()
  t.teardown(wide.close)
  const harness = await start({
    console: { path: PATH },
    signUp: true,
    upstream: { clients: ['shop'] },
    upstreams: [{ id: 'wide', kind: 'oidc', name: 'Wide', issuer: wide.issuer, emails: 'verified', create: true, ...TEST_CLIENT }],
    ...await atLocalhost()
  })
  const { kit, browser } = harness
  const present = () => ({ auth_time: Math.floor(kit.clock.now() / 1000) })
  /** An administrator who has come by a provider, in their browser. */
  const arrive = async (from: string, account: string) => {
    for (const provider of [kit.upstream, wide]) provider({ sub: account, email: account, email_verified: true, ...present() })
    const tab = browser()
    await through(tab, `/api/v1/auth/upstream/${from}?next=security`)
    const users = kit.app.identity.store.collection<UserRecord>('users')
    const user = await users.getBy('account', account)
    await kit.app.identity.users.patch(user?.id ?? '', { data: { roles: { admin: true } } }, OPERATOR)
    return tab
  }

  await t.test('a provider that is for some apps leads not into it', async (t) => {
    const tab = await arrive('test', 'narrow@example.com')
    t.equal((await tab.open('/account')).response.status, 200)
    const page = await tab.open(PATH)
    t.equal(page.response.status, 403)
    t.match(page.text, 'works for some apps only')
    t.equal(readCookie(tab), '')
  })

  await t.test('who has signed out is not signed in again without a question', async (t) => {
    const tab = await arrive('wide', 'wide@example.com')
    const page = await tab.open(PATH)
    t.ok(isOpen(page))
    const { headers } = await tab.fetch(`${PATH}/sign-out`, { method: 'POST', body: new URLSearchParams({ xsrf: readXsrf(page) }), headers: { origin: tab.origin } })
    t.match(headers.getSetCookie().join(), 'identity_signed_out=1', 'as after a sign-out at the pages of the account')
    t.match((await leave(tab, '/api/v1/auth/upstream/wide')).search, /prompt=(login|select_account)/)
  })
})

for (const [acr, options] of [['phr', {}], ['phr', { factors: 'off' }], ['mfa', { factors: 'off' }], ['mfa', {}]] as const) {
  eachStore(t, `the strength ${acr} with ${JSON.stringify(options)}`, async (t, start) => {
    const harness = await start({ console: { path: PATH, acr }, ...options })
    const boss = await addStaff(harness, 'boss@example.com', 'admin')
    const users = harness.kit.app.identity.store.collection<UserRecord>('users')
    // As after an administrator's reset: a factor is added only with the link that was sent.
    for (const enrol_ticket of [undefined, 'ticket']) {
      await users.update(boss.user_id, enrol_ticket === undefined ? { unset: ['enrol_ticket'] } : { set: { enrol_ticket } })
      const tab = harness.browser()
      await enter(harness, '/account', tab, boss)
      for (let count = 0; count < 2; count++) {
        const page = await tab.open(`${PATH}/people`)
        t.notOk(isOpen(page), 'the password alone opens nothing, and the browser comes to a page')
        const sent = await post(page, page.response.url, { account: boss.account, password: boss.password })
        t.notOk(isOpen(sent))
        const isOffered = acr === 'mfa' && !('factors' in options) && enrol_ticket === undefined
        t.equal(/Set up/.test(sent.title), isOffered, `${sent.response.status} ${sent.title}`)
      }
      t.equal((await users.get(boss.user_id))?.ways, undefined)
      t.equal(readCookie(tab), '')
    }
  })
}
