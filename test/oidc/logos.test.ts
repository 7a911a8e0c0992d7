import t from 'tap'
import type { LogoRecord } from '../../lib/clients/logos.ts'
import type { ClientRecord } from '../../lib/records/client.ts'
import { waitUntil } from '../helpers/wait.ts'
import { type App, askCode, eachStore, signIn } from './harness.ts'

const OPERATOR = { user_id: '', isAdmin: true }
const IMAGE = 'https://shop.example/logo-of-the-shop.png'
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')
const DATA = `data:image/png;base64,${PNG.toString('base64')}`
const SERVICE = 'data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4='

eachStore(t, 'the logo of an app on the pages', async (t, start) => {
  const asked: string[] = []
  let answer: () => Promise<Buffer> = async () => PNG
  const harness = await start({
    oidc: { logo: SERVICE },
    readOutbound: () => async ({ url }: { url: string }) => {
      asked.push(url)
      return { status: 200, type: 'text/html', headers: {}, body: await answer() }
    }
  })
  const { kit, browser, register, user, post } = harness
  const { clients, store } = kit.app.identity
  const logos = store.collection<LogoRecord>('client_logos')
  const records = store.collection<ClientRecord>('clients')
  t.beforeEach(() => {
    asked.length = 0
    answer = async () => PNG
  })

  async function create (fields: Partial<ClientRecord> = {}): Promise<App> {
    const app = await register({ public: true })
    await records.update(app.client_id, { set: { image: IMAGE, ...fields } })
    return app
  }
  const open = async (app: App) => await browser().open(askCode(app).url)
  const openShown = async (app: App) => await waitUntil('a page with the logo', async () => {
    const page = await open(app)
    return page.text.includes(DATA) && page
  })

  await t.test('the sign-in page has it beside the name of the app, as data, from the second page on', async (t) => {
    const app = await create()
    const first = await open(app)
    t.notMatch(first.text, DATA)
    const page = await openShown(app)
    t.ok(page.text.includes(`<img class="logo" src="${DATA}" alt=""> `), 'decorative')
    t.match(page.text, 'alt=""> <strong><bdi>The App</bdi></strong>', 'the name stays')
    t.ok(page.text.includes(`<header><img src="${SERVICE}"`), 'and so does the logo of the service')
    const wrong = await page.submit({ account: user.account, password: 'wrong' })
    t.ok(wrong.text.includes(DATA), 'also where the password was wrong')
    for (const { text, response } of [first, page, wrong]) {
      t.notMatch(text, 'shop.example', 'the URL is on no page')
      t.match(response.headers.get('content-security-policy'), /default-src 'none';.* img-src data:;/, 'a browser could not load it')
    }
    t.strictSame(asked, [IMAGE])
  })

  await t.test('the consent has it in place of the initial', async (t) => {
    const app = await create()
    await openShown(app)
    const tab = browser()
    await signIn(harness, askCode(app).url, tab)
    const { body } = await post('device_authorization', { scope: 'openid' }, app)
    const consent = await (await tab.open('/api/v1/auth/device')).submit({ user_code: String(body.user_code) })
    t.equal(consent.title, 'Continue to The App')
    t.ok(consent.text.includes(`<p class="mark"><img src="${DATA}" alt=""></p>`))
    t.match(consent.text, 'Continue to <bdi>The App</bdi>')
    t.notMatch(consent.text, 'shop.example')
    t.notMatch((await tab.open('/account/apps')).text, /data:image\/png/, 'lists have none')
  })

  await t.test('a slow host delays no page', async (t) => {
    const { promise, resolve } = Promise.withResolvers<Buffer>()
    answer = async () => await promise
    const app = await create()
    for (let turn = 0; turn < 3; turn++) t.equal((await open(app)).title, 'Sign in')
    t.strictSame(asked, [IMAGE])
    resolve(PNG)
    await openShown(app)
  })

  await t.test('an app that the operator does not vouch for has none, and none is fetched', async (t) => {
    const app = await create({ first_party: false })
    const page = await open(app)
    await open(app)
    t.notMatch(page.text, /class="logo"/)
    t.equal(await logos.get(app.client_id), null)
    t.strictSame(asked, [])
  })

  await t.test('one that is no longer vouched for is shown without it', async (t) => {
    const app = await create()
    await openShown(app)
    await records.update(app.client_id, { set: { first_party: false } })
    t.notMatch((await open(app)).text, DATA)
  })

  await t.test('another image replaces it, and no image is none', async (t) => {
    const app = await create()
    await openShown(app)
    const image = 'https://shop.example/new.png'
    await clients.patch(app.client_id, { data: { image } }, OPERATOR)
    t.notMatch((await open(app)).text, DATA)
    await openShown(app)
    t.strictSame(asked, [IMAGE, image])
    await clients.patch(app.client_id, { data: { image: null } }, OPERATOR)
    t.notMatch((await open(app)).text, DATA)
  })

  await t.test('it goes with its client, and is in no list, export or event', async (t) => {
    const app = await create()
    await openShown(app)
    const content = PNG.toString('base64')
    t.match(await logos.get(app.client_id), { url: IMAGE, type: 'image/png', content })
    const { headers } = await kit.mint({ user: user.account, roles: ['admin'] })
    for (const url of [`/api/v1/client/${app.client_id}`, '/api/v1/client/list']) {
      const { body, statusCode } = await kit.inject({ url, headers })
      t.equal(statusCode, 200, url)
      t.notMatch(body, content, url)
    }
    t.notMatch(JSON.stringify(await kit.events.list()), content)
    await clients.remove(app.client_id, OPERATOR)
    t.equal(await logos.get(app.client_id), null)
  })
})
