import t from 'tap'
import { ROUTES } from '../../lib/oidc/routes.ts'
import { createKeptAnswers } from '../../lib/sent-forms/kept-answers.ts'
import { createApp, startIdentity } from '../../testing/kit.ts'
import type { Browser, Page } from '../oidc/browser.ts'
import { type Harness, askCode, createFile, eachStore, startHarness } from '../oidc/harness.ts'
import { enter, post as postNew, readFormId, readXsrf } from './visits.ts'

const DONE = 'Already sent'

/** A client of the person, and the page that adds a secret to it. */
async function openClient ({ kit, user }: Harness, tab: Browser): Promise<{ clientId: string, page: Page, fields: Record<string, string> }> {
  const { clientId } = await kit.app.identity.clients.create({ data: { name: 'Mine', redirectUris: [], scopes: [] }, credentials: true }, { user_id: user.user_id, isAdmin: false })
  const page = await tab.open(`/account/clients/${clientId}`)
  const match = /name="match" value="([^"]*)"/.exec(page.text)?.[1]?.replaceAll('&quot;', '"') ?? ''
  return { clientId, page, fields: { action: 'add', match, name: 'deploy', expires: '' } }
}

const readSecret = ({ text }: Page) => /id="added">([^<]*)/.exec(text)?.[1] ?? /<code id="[^"]*">([^<]{20,})<\/code>/.exec(text)?.[1]

/** Posts a form with the id that its page carries. */
const post = async (page: Page, path: string, fields: Record<string, string>) => await postNew(page, path, { form_id: readFormId(page), ...fields })

/** The fields of a form as a browser sends them, with the id that its page carries. */
const sendRaw = async (tab: Browser, page: Page, path: string, fields: Record<string, string>) => await tab.fetch(path, {
  method: 'POST', body: new URLSearchParams({ xsrf: readXsrf(page), form_id: readFormId(page), ...fields }), headers: { origin: tab.origin }
})

eachStore(t, 'a form that is sent again', async (t, start) => {
  const harness = await start()
  const { kit, browser, user } = harness
  const { store, clients } = kit.app.identity
  const countSecrets = async (clientId: string) => (await clients.listSecrets(clientId, { user_id: user.user_id, isAdmin: false })).secrets.length

  await t.test('shows a secret again within 30 s, and after that says what was done and offers another', async (t) => {
    const { browser: tab } = await enter(harness)
    const { clientId, page, fields } = await openClient(harness, tab)
    const path = `/account/clients/${clientId}`
    const first = await (await sendRaw(tab, page, path, fields)).text()
    t.match(first, /<code/)
    t.equal(await (await sendRaw(tab, page, path, fields)).text(), first, 'the same page, secret included')
    kit.clock.advance(31_000)
    const late = await post(page, path, fields)
    t.equal(late.title, DONE)
    t.match(late.text, `href="${path}"`)
    t.equal(await countSecrets(clientId), 2)
    t.equal(JSON.stringify((await Array.fromAsync(store.collection('sent_forms').stream())).flat()).includes('deploy'), false, 'nothing of a form is stored')
  })

  await t.test('is another form with other fields, or of another page, and the answer is dropped with the next page', async (t) => {
    const { browser: tab } = await enter(harness)
    const { clientId, page, fields } = await openClient(harness, tab)
    const path = `/account/clients/${clientId}`
    await sendRaw(tab, page, path, fields)
    const next = await tab.open('/account')
    t.equal((await post(page, path, fields)).title, DONE, 'the secret is shown no more')
    for (const name of ['Ann', 'Anna', 'Ann']) await post(next, '/account', { name })
    t.equal((await kit.app.identity.users.get(user.user_id))?.name, 'Anna', 'the third is the first one again')
    await post(await tab.open('/account'), '/account', { name: 'Ann' })
    t.equal((await kit.app.identity.users.get(user.user_id))?.name, 'Ann', 'from a new page it is a new form')
  })

  await t.test('shows nothing when the session has ended meanwhile, in another browser, or without its secret', async (t) => {
    const { browser: tab } = await enter(harness)
    const { clientId, page, fields } = await openClient(harness, tab)
    const path = `/account/clients/${clientId}`
    const first = await (await sendRaw(tab, page, path, fields)).text()
    const other = browser()
    await other.open('/account')
    t.not(await (await sendRaw(other, page, path, fields)).text(), first)
    await kit.app.identity.tokenSessions.end(user.user_id)
    const ended = await (await sendRaw(tab, page, path, fields)).text()
    t.match(ended, DONE)
    t.notMatch(ended, readSecret(page) ?? /<code id=/)
    t.equal(await countSecrets(clientId), 2)
  })

  await t.test('of a link is answered again in its browser only; another one gets 410', async (t) => {
    await kit.app.identity.accounts.forgotPassword(user.account, { ip: '192.0.2.1' })
    const { link } = await kit.mails.next({ to: user.account })
    const tab = browser()
    const page = await tab.open(link!)
    const other = browser()
    const same = await other.open(link!)
    const fields = { token: new URL(link!).searchParams.get('token')!, password: 'a better horse' }
    const answers = await Promise.all([sendRaw(tab, page, '/account/reset', fields), sendRaw(tab, page, '/account/reset', fields)])
    t.strictSame(answers.map(({ status }) => status), [200, 200])
    t.match(await answers[1].text(), 'Your password is set')
    t.equal((await sendRaw(other, same, '/account/reset', fields)).status, 410)
    t.equal((await sendRaw(other, page, '/account/reset', fields)).status, 410, 'with the id of the first one too')
    await kit.app.identity.users.patch(user.user_id, { data: { password: user.password } }, { user_id: 'operator', isAdmin: true })
    await kit.mails.all()
  })

  await t.test('is carried out by the repeat where its sender has left before it was, as a browser does at the second click', async (t) => {
    const { browser: tab } = await enter(harness)
    for (let delay = 0; delay < 12; delay++) {
      const page = await tab.open('/account')
      const name = `Ann ${delay}`
      const body = new URLSearchParams({ xsrf: readXsrf(page), form_id: readFormId(page), name })
      const left = new AbortController()
      const first = tab.fetch('/account', { method: 'POST', body, signal: left.signal }).catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, delay))
      left.abort()
      const repeat = await tab.fetch('/account', { method: 'POST', body })
      await first
      t.equal(`${repeat.status} ${repeat.headers.get('location')}`, '303 /account?done=name', `after ${delay} ms`)
      t.equal((await kit.app.identity.users.get(user.user_id))?.name, name)
    }
  })

  await t.test('that was refused is an attempt of its own', async (t) => {
    const tab = browser()
    const page = await tab.open('/account/sign-in')
    const wrong = { account: user.account, password: 'wrong' }
    t.equal((await sendRaw(tab, page, '/account/sign-in', wrong)).status, 400)
    t.equal((await sendRaw(tab, page, '/account/sign-in', wrong)).status, 400)
    t.equal((await store.collection('sent_forms').count({ equal: { done: false } })), 0, 'nothing is stored for it')
  })

  await t.test('to sign in gets the cookie of the session, at an app too, also where the first answer was followed', async (t) => {
    const tab = browser()
    const page = await tab.open('/account/sign-in')
    const answers = await Promise.all([0, 1].map(async () => await sendRaw(tab, page, '/account/sign-in', { account: user.account, password: user.password })))
    t.strictSame(answers.map(({ status }) => status), [303, 303])
    const [one, two] = answers.map(({ headers }) => headers.getSetCookie().sort())
    t.ok(one!.length > 2, 'the session, its signature, and the known browser')
    t.strictSame(two, one)
    const app = await harness.register()
    const phone = browser()
    const form = await phone.open(askCode(app).url)
    const { pathname } = new URL(form.response.url)
    const sent = await sendRaw(phone, form, pathname, { account: user.account, password: user.password })
    const resume = sent.headers.get('location')!
    const [left, again] = await Promise.all([phone.fetch(resume), phone.fetch(resume)])
    t.equal(left.headers.get('location'), again.headers.get('location'), 'the same code')
    t.strictSame(left.headers.getSetCookie().sort(), again.headers.getSetCookie().sort())
    t.match(left.headers.get('location'), /^https:\/\/app\.example\/cb\?code=/)
    t.not((await browser().open(resume)).response.status, 200, 'another browser with the same link')
  })
})

t.test('another process does not carry out a form again, and says what was done', async (t) => {
  const database = createFile(t)
  const first = await startHarness(t, { database })
  const { kit } = first
  const other = await startIdentity({ t, database, rateLimit: false, time: kit.clock.now() })
  const { url } = await other.listen()
  const { browser: tab } = await enter(first)
  const { clientId, page, fields } = await openClient(first, tab)
  const path = `/account/clients/${clientId}`
  await sendRaw(tab, page, path, fields)
  const repeat = await (await sendRaw(tab, page, `${url}${path}`, fields)).text()
  t.match(repeat, DONE)
  const profile = await tab.open('/account')
  const answers = await Promise.all(['', url].map(async (origin) => await tab.fetch(`${origin}/account`, {
    method: 'POST', body: new URLSearchParams({ xsrf: readXsrf(profile), form_id: readFormId(profile), name: 'Twice' })
  })))
  t.strictSame(answers.map(({ status, headers }) => `${status} ${headers.get('location')}`), Array(2).fill('303 /account?done=name'))
  t.equal((await kit.events.list({ type: 'user.updated' })).length, 1)
})

t.test('HEAD begins and finishes nothing: a page whose GET does has no route for it', async (t) => {
  const app = createApp()
  const heads = new Set<string>()
  app.addHook('onRoute', ({ method, url, schema }) => {
    if ([method].flat().includes('HEAD') && (schema)?.hide === true) heads.add(url)
  })
  const { kit } = await startHarness(t, { app, signUp: true, selfDelete: true, upstream: {} })
  const finishing = [...heads].filter((url) => /linked|upstream|authorization|:uid\/|success/.test(url) && !/(sign-up|forgot|reset)$|^\/\.well-known/.test(url))
  t.strictSame(finishing, [])
  t.ok(heads.size > 20)
  for (const url of ['/account/identities/linked', '/account/sign-in/upstream', `/api/v1${ROUTES.authorization}/abc`]) {
    t.equal((await kit.inject({ method: 'HEAD', url })).statusCode, 404, url)
    t.ok(kit.app.hasRoute({ method: 'GET', url: url.replace('/abc', '/:uid') }), `${url} has a page`)
  }
})

t.test('a thousand answers are kept: the network with the most loses its oldest', async (t) => {
  const answers = createKeptAnswers(() => 0, 30_000)
  const add = (id: string, network: string) => answers.add(id, { browser: id, network, at: 0, sealed: '' })
  add('known', 'home')
  for (let count = 0; count < 5000; count++) add(`stranger ${count}`, 'elsewhere')
  t.ok(answers.find('known'))
  t.notOk(answers.find('stranger 0'))
  t.equal(Array.from({ length: 5000 }, (_, count) => answers.find(`stranger ${count}`)).filter(Boolean).length, 999)
})
