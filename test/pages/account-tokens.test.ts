import t from 'tap'
import { eachStore } from '../oidc/harness.ts'
import { enter, post, readFormId, readXsrf } from './visits.ts'

const DAY = 24 * 60 * 60_000
const PATH = '/account/tokens'

eachStore(t, 'personal access tokens on the account pages', async (t, start) => {
  const harness = await start({ personalTokens: { maxDays: 90 } })
  const { kit, user, browser } = harness
  const { personalTokens, resources } = kit.app.identity
  const tab = browser()
  await enter(harness, '/account', tab)
  const day = (days: number) => new Date(kit.clock.now() + days * DAY).toISOString().slice(0, 10)
  const list = async () => (await personalTokens!.list(user.user_id)).map(({ name }) => name)
  const works = async (token: string) => (await kit.inject({ url: '/api/v1/auth/tokeninfo', headers: { authorization: `Bearer ${token}` } })).statusCode === 200
  const fields = (more: Record<string, string> = {}) => ({ name: 'nightly', expires: day(30), place: 'here', 'scope-here': 'account:read', current_password: user.password, ...more })

  await t.test('a token is made and shown once', async (t) => {
    const empty = await tab.open(PATH)
    t.match(empty.text, 'You have no personal access tokens.')
    t.match(empty.text, 'href="/account/tokens/new"')
    const form = await tab.open(`${PATH}/new`)
    t.match(form.text, 'See your profile and where you are signed in')
    t.notMatch(form.text, 'See the event log', 'people without a role are offered no scope that takes one')
    t.notMatch(form.text, 'Change how you sign in', 'and nobody account:security')
    const page = await post(form, `${PATH}/new`, fields({ name: 'nightly <b>report</b>' }))
    t.match(page.text, 'The token was created. Save it now')
    const [token = ''] = /fi_pat_[0-9A-Za-z]{49}/.exec(page.text) ?? []
    t.ok(await works(token))
    t.notMatch(page.text, '<b>report</b>')
    t.equal(page.response.headers.get('cache-control'), 'no-store')
    const again = await tab.open(PATH)
    t.notMatch(again.text, token)
    t.match(again.text, `Ends with ${token.slice(-4)}`)
    t.match((await personalTokens!.list(user.user_id))[0], { scopes: ['account:read'], expiresAt: `${day(30)}T23:59:59.999Z` })
    await kit.inject({ url: '/api/v1/auth/tokeninfo', headers: { authorization: `Bearer ${token}` } })
    t.match((await tab.open(PATH)).text, /Last used <time/)
  })

  await t.test('a form that is sent twice makes one token, and shows it twice', async (t) => {
    const form = await tab.open(`${PATH}/new`)
    const sent = { ...fields({ name: 'twice' }), xsrf: readXsrf(form), form_id: readFormId(form) }
    const [one, other] = [await post(form, `${PATH}/new`, sent), await post(form, `${PATH}/new`, sent)]
    const read = (text: string) => /fi_pat_[0-9A-Za-z]{49}/.exec(text)?.[0]
    t.ok(read(one.text))
    t.equal(read(other.text), read(one.text))
    t.strictSame((await list()).filter((name) => name === 'twice'), ['twice'])
  })

  await t.test('what is refused, and says why', async (t) => {
    const before = await list()
    for (const [more, text] of [
      [{ current_password: 'wrong' }, 'Your current password is wrong'],
      [{ name: ' ' }, 'Enter another name'],
      [{ expires: '' }, 'Choose today or a later day'],
      [{ expires: day(-1) }, 'Choose today or a later day'],
      [{ expires: day(91) }, 'Choose today or a later day'],
      [{ 'scope-here': 'account:security' }, 'This is no longer offered'],
      [{ place: 'https://nothing.example' }, 'This is no longer offered']
    ] as const) {
      const page = await post(await tab.open(`${PATH}/new`), `${PATH}/new`, fields(more))
      t.match(page.text, text, JSON.stringify(more))
      t.ok(page.response.status >= 400, String(page.response.status))
    }
    t.strictSame(await list(), before)
    const other = await post(await tab.open(`${PATH}/new`), `${PATH}/new`, fields({ xsrf: 'another' }))
    t.match(other.text, /page.* expired/)
    t.strictSame(await list(), before)
  })

  await t.test('where there are APIs, the person chooses one place', async (t) => {
    await resources.create({ data: { id: 'https://orders.example', name: 'Orders', scopes: { 'orders:read': 'See orders' }, selfService: ['orders:read'] } })
    const form = await tab.open(`${PATH}/new`)
    t.match(form.text, 'name="place" type="radio" value="https://orders.example"')
    const page = await post(form, `${PATH}/new`, fields({ name: 'orders', place: 'https://orders.example', 'scope-https://orders.example': 'orders:read' }))
    const [token = ''] = /fi_pat_[0-9A-Za-z]{49}/.exec(page.text) ?? []
    const { data } = (await kit.inject({ url: '/api/v1/auth/tokeninfo', headers: { authorization: `Bearer ${token}` } })).json<{ data: object }>()
    t.match(data, { aud: 'https://orders.example', scopes: ['orders:read'] })
    t.match(page.text, /For .*Orders/)
  })

  await t.test('a token is removed after a question', async (t) => {
    const { id, token } = await kit.personalToken(user.user_id, { name: 'old' })
    const question = await post(await tab.open(PATH), PATH, { token: id })
    t.match(question.text, 'Remove the token')
    t.ok(await works(token))
    const page = await post(question, PATH, { token: id, confirm: 'yes' })
    t.match(page.text, 'The token was removed.')
    t.notOk(await works(token))
    const stranger = await kit.mint({ user: 'bob@example.com' })
    const theirs = await kit.personalToken(stranger.user_id)
    t.notMatch((await post(await tab.open(PATH), PATH, { token: theirs.id })).text, 'Remove the token', 'that of somebody else')
    t.equal((await post(await tab.open(PATH), PATH, { token: theirs.id, confirm: 'yes' })).response.status, 404)
    t.ok(await works(theirs.token))
  })

  await t.test('pages that end sessions say how many tokens end', async (t) => {
    const count = (await list()).length
    for (const path of ['/account/password', '/account/sessions']) t.match((await tab.open(path)).text, `You have ${count} personal access tokens. They will stop working.`, path)
    await kit.app.identity.accounts.recoverUser(user.user_id, { user_id: '', isAdmin: true })
    const { link = '' } = (await kit.mails.all()).find(({ token }) => token !== undefined)!
    t.match((await browser().open(link)).text, `You have ${count} personal access tokens. They will stop working.`, 'the page of a link for a new password')
    const { token } = await kit.personalToken(user.user_id)
    await post(await tab.open('/account/sessions'), '/account/sessions', { others: 'yes' })
    t.notOk(await works(token))
    t.strictSame(await list(), [])
    t.notMatch((await tab.open('/account/sessions')).text, 'personal access token')
  })

  await t.test('an old sign-in is asked again', async (t) => {
    kit.clock.advance(11 * 60_000)
    for (const path of [PATH, `${PATH}/new`]) t.match((await tab.open(path)).title, /Confirm it’s you/, path)
  })
})

eachStore(t, 'only some people may make tokens', async (t, start) => {
  const page = await enter(await start({ personalTokens: { maxDays: 1, roles: ['editor'] } }), PATH)
  t.match(page.text, 'Only some people can create tokens here.')
  t.notMatch(page.text, 'tokens/new')
})

eachStore(t, 'without the option there is no such page', async (t, start) => {
  const off = await start()
  const tab = off.browser()
  t.notMatch((await enter(off, '/account', tab)).text, 'Access tokens')
  t.equal((await tab.open(PATH)).response.status, 404)
})
