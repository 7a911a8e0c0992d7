import t from 'tap'
import { forEachStore } from '../helpers/build.ts'
import { callAs, createUser, signIn, unique } from '../helpers/people.ts'
import { eachStore } from '../oidc/harness.ts'
import { addUser, enter, post } from '../pages/visits.ts'

const VICTIM = 'victim@corp.example'

await forEachStore(t, async (t, build) => {
  const kit = await build(t)
  const { accounts, users } = kit.app.identity
  const admin = await signIn(kit, { roles: ['admin'], ttl: 1_000_000 })
  const anybody = callAs(kit)

  await t.test('a stranger gets nobody to confirm an address for the account of the stranger', async (t) => {
    const attacker = await signIn(kit, { user: await createUser(admin, { account: 'attacker@evil.example' }) })
    const victim = await signIn(kit, { user: await createUser(admin, { account: 'victim' }) })
    t.match(await attacker.post('/user/email', { data: { email: VICTIM } }), { status: 204 })
    const { token, text, html } = await kit.mails.next({ to: VICTIM })
    for (const body of [text, html]) {
      t.match(body, 'attacker@evil.example', 'the mail names the account')
      t.match(body, VICTIM, 'and the address')
    }
    const body = { data: { token } }
    t.match(await anybody.post('/auth/verify', body), { status: 401, headers: { 'www-authenticate': 'Bearer' }, body: { code: 'ErrUnknown' } })
    t.match(await callAs(kit, { authorization: 'Bearer unknown' }).post('/auth/verify', body), { status: 401 })
    t.match(await victim.post('/auth/verify', body), { status: 403, body: { code: 'ErrPerm', message: 'token: the link belongs to another account' } })
    t.match(await admin.post('/auth/verify', body), { status: 403 }, 'nor does an administrator')
    const weak = callAs(kit, (await kit.mint({ user: attacker.user_id, scopes: ['account:write', 'users:write'] })).headers)
    t.match(await weak.post('/auth/verify', body), { status: 403, headers: { 'www-authenticate': /insufficient_scope.*account:security/ } })
    await t.rejects(accounts.verifyAddress(token!), { code: 'ErrUnknown' }, 'embedded too')
    t.equal((await users.get(attacker.user_id))?.email, undefined, 'nothing has changed')
    const right = callAs(kit, (await kit.mint({ user: attacker.user_id, scopes: ['account:security'] })).headers)
    t.match(await right.post('/auth/verify', body), { status: 204 }, 'and nothing was spent')
    t.match(await right.post('/auth/verify', body), { status: 410 }, 'before its use')
    await kit.mails.all()
  })

  await t.test('a link that verifies the present address needs no token, whatever token is sent', async (t) => {
    const account = `${unique('bob')}@example.com`
    const bob = await signIn(kit, { user: await createUser(admin, { account }) })
    await bob.post('/auth/verify/send')
    const { token } = await kit.mails.next({ to: account })
    t.match(await callAs(kit, { authorization: 'Bearer unknown' }).post('/auth/verify', { data: { token } }), { status: 204 })
    t.match(await anybody.post('/auth/verify', { data: { token } }), { status: 410 })
    t.match(await anybody.post('/auth/verify', { data: { token: 'unknown' } }), { status: 410 })
  })

  await t.test('neither the new mailbox nor the password ends the undo of the former mailbox', async (t) => {
    const account = `${unique('ann')}@example.com`
    const [first, second] = [`${unique('thief')}@evil.example`, `${unique('thief')}@evil.example`]
    const user_id = await createUser(admin, { account, password: 'the first password' })
    const change = async (email: string) => {
      const thief = await signIn(kit, { user: user_id })
      await thief.post('/user/email', { data: { email } })
      t.match(await thief.post('/auth/verify', { data: { token: (await kit.mails.next({ to: email })).token } }), { status: 204 })
    }
    await change(first)
    const undo = await kit.mails.next({ to: account })
    await anybody.post('/auth/forgot', { data: { account: first } })
    t.match(await anybody.post('/auth/reset', { data: { token: (await kit.mails.next({ to: first })).token, password: 'of the thief' } }), { status: 204 })
    const thief = await signIn(kit, { user: user_id })
    t.match(await thief.patch('/user', { data: { password: 'the next of the thief', current_password: 'of the thief' } }), { status: 204 })
    await change(second)
    t.match(await anybody.post('/auth/undo', { data: { token: undo.token } }), { status: 204 })
    t.match(await users.get(user_id), { account })
    t.notOk([first, second].includes((await users.get(user_id))?.email ?? ''))
    await kit.mails.all()
  })
})

eachStore(t, 'the page of a change of address', async (t, start) => {
  const harness = await start()
  const { kit, user, browser } = harness
  const { accounts, users, store } = kit.app.identity
  const carl = await addUser(harness, 'carl')
  const ask = async (email: string) => {
    await accounts.changeAddress(user.user_id, email)
    return (await kit.mails.next({ to: email })).link!
  }
  const read = async () => (await users.get(user.user_id))?.email

  await t.test('a victim without a sign-in, and one with a sign-in of their own, confirm nothing', async (t) => {
    const link = await ask(VICTIM)
    const { searchParams } = new URL(link)
    const token = searchParams.get('token') ?? ''
    const page = await browser().open(link)
    t.match(page.text, user.account, 'the page names the account')
    t.match(page.text, VICTIM)
    t.equal((await page.submit()).title, 'Sign in')
    const victim = (await enter(harness, '/account', browser(), carl)).browser
    const own = await victim.open(link)
    t.match(own.text, 'You are signed in as <strong><bdi>carl</bdi></strong>')
    t.match(own.text, user.account)
    // As a form that the page does not have.
    t.notMatch((await post(own, '/account/verify', { token })).title, 'Your email address is confirmed')
    t.equal(await read(), undefined)
    t.match(await post(own, '/account/verify', { token }, { origin: 'https://evil.example' }), { response: { status: 403 } })
    t.equal((await victim.open('/account')).title, 'Profile', 'nobody was signed out')
    const mine = await enter(harness)
    const confirm = await mine.browser.open(link)
    t.equal((await mine.browser.open('/account/verify', { method: 'POST', body: new URLSearchParams({ token }), headers: { origin: harness.url } })).response.status, 400, 'a form without the secret of the browser')
    t.equal(await read(), undefined)
    t.equal((await confirm.submit()).title, 'Your email address is confirmed', 'the link was not spent')
    t.equal(await read(), VICTIM)
    t.match(await browser().open(link), { response: { status: 410 } })
    await kit.mails.all()
  })

  await t.test('a browser without a sign-in carries the link through it; the store has nothing that opens the link', async (t) => {
    const link = await ask('ann@example.org')
    const token = new URL(link).searchParams.get('token') ?? ''
    const phone = browser()
    await store.collection('sign_ins').deleteMany({ before: { id: '~' } })
    for (let count = 0; count < 3; count++) await phone.open(link)
    t.equal(await store.collection('sign_ins').count(), 0, 'opening a link stores nothing')
    const form = await (await phone.open(link)).submit()
    t.notMatch(form.response.url, token)
    const stored = []
    for await (const batch of store.collection('sign_ins').stream()) stored.push(...batch)
    t.equal(stored.length, 1)
    t.notMatch(JSON.stringify(stored), token)
    const confirm = await form.submit({ account: user.account, password: user.password })
    t.equal(confirm.title, 'Confirm your new email address')
    t.notMatch(confirm.response.url + confirm.text, token)
    t.equal((await browser().open('/account/verify')).response.status, 410, 'another browser has no link')
    t.equal((await confirm.submit()).title, 'Your email address is confirmed')
    t.equal(await read(), 'ann@example.org')
    t.equal(await store.collection('sign_ins').count(), 0)
    await kit.mails.all()
  })

  await t.test('a browser of somebody else signs out first, and a carried link ends after ten minutes', async (t) => {
    const link = await ask('ann@example.net')
    const tab = (await enter(harness, '/account', browser(), carl)).browser
    const form = await (await tab.open(link)).submit({ 'sign-out': 'yes' })
    t.equal(form.title, 'Sign in')
    const wrong = await form.submit({ account: carl.account, password: carl.password })
    t.match(wrong.text, 'You are signed in as <strong><bdi>carl</bdi></strong>', 'the same one again is told once more')
    const again = await wrong.submit({ 'sign-out': 'yes' })
    kit.clock.advance(10 * 60_000)
    t.equal((await again.submit({ account: user.account, password: user.password })).response.status, 410)
    t.equal((await (await tab.open(link)).submit()).title, 'Your email address is confirmed', 'the link itself still works')
  })
})

eachStore(t, 'without account pages a change of address has its page', async (t, start) => {
  const harness = await start({ oidc: { accountPath: false } })
  const { kit, user, browser } = harness
  await kit.app.identity.accounts.changeAddress(user.user_id, 'ann@example.org')
  const page = await browser().open((await kit.mails.next({ to: 'ann@example.org' })).link!)
  const confirm = await (await page.submit()).submit({ account: user.account, password: user.password })
  t.equal((await confirm.submit()).title, 'Your email address is confirmed')
})
