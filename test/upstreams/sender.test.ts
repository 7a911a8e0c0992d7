import { join } from 'node:path'
import t from 'tap'
import { findFreePort } from '../helpers/port.ts'
import { startCommand } from '../helpers/process.ts'
import { Browser } from '../oidc/browser.ts'
import { askCode, eachStore } from '../oidc/harness.ts'
import { isSignedOut } from '../pages/visits.ts'
import { agree, leave } from './through.ts'

t.setTimeout(180_000)

eachStore(t, 'oidc-provider', async (t, start) => {
  const issuer = `http://127.0.0.1:${await findFreePort()}`
  const upstream = (id: string, more: object = {}) => ({ id, kind: 'oidc' as const, issuer, clientId: id, clientSecret: 'a secret of a test', emails: 'verified' as const, create: true, ...more })
  const harness = await start({ signUp: true, upstreams: [upstream('named'), upstream('bare')] })
  const { seen } = startCommand(t, process.execPath, { args: [join(import.meta.dirname, 'sender.ts'), issuer, harness.url], env: {} })
  await seen(/^listening$/m)
  const app = await harness.register()

  /** Signs in there, in a browser that has the cookies of both. */
  async function enter (id: string, person: string, ours = harness.browser(), theirs = new Browser(issuer)) {
    const { url, verifier } = askCode(app, { upstream: id })
    let page = await theirs.open((await leave(ours, url)).href)
    if (/Sign-in/.test(page.title)) page = await page.submit({ login: person, password: 'x' })
    if (page.left === undefined) page = await page.submit()
    const code = (await agree(await ours.open(page.left!.href))).left?.searchParams.get('code') ?? ''
    const { body } = await harness.post('token', { code, code_verifier: verifier, redirect_uri: app.redirect_uri, grant_type: 'authorization_code' }, app)
    return { ours, theirs, refresh: String(body.refresh_token) }
  }

  async function signOut ({ theirs }: { theirs: Browser }): Promise<void> {
    const page = await theirs.open('/session/end')
    await page.submit({ logout: 'yes' })
  }

  const refreshes = async ({ refresh }: { refresh: string }) => (await harness.post('token', { grant_type: 'refresh_token', refresh_token: refresh }, app)).status === 200

  await t.test('signs a browser out by its session', async (t) => {
    const [one, two] = [await enter('named', 'ada'), await enter('named', 'ada')]
    for (const { ours } of [one, two]) t.notOk(isSignedOut(await ours.open('/account')))
    await signOut(one)
    t.ok(isSignedOut(await one.ours.open('/account')))
    t.notOk(isSignedOut(await two.ours.open('/account')), 'and no other one')
    t.ok(await refreshes(one), 'nor what was to outlast it')
    const again = await enter('named', 'ada', one.ours, one.theirs)
    t.notOk(isSignedOut(await again.ours.open('/account')))
  })

  await t.test('signs a person out, where it names no session', async (t) => {
    const [one, two, other] = [await enter('bare', 'bob'), await enter('bare', 'bob'), await enter('bare', 'eve')]
    await signOut(one)
    for (const { ours } of [one, two]) t.ok(isSignedOut(await ours.open('/account')))
    for (const signedIn of [one, two]) t.notOk(await refreshes(signedIn))
    t.notOk(isSignedOut(await other.ours.open('/account')))
    harness.kit.clock.advance(1000)
    t.notOk(isSignedOut(await (await enter('bare', 'bob')).ours.open('/account')))
  })

  t.equal((await harness.kit.events.list({ type: 'identity.signed_out' })).length, 2)
})
