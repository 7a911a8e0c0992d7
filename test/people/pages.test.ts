import * as openid from 'openid-client'
import t from 'tap'
import { withoutIds } from '../oidc/browser.ts'
import { askCode, eachStore } from '../oidc/harness.ts'

const EMAIL = 'bob@example.com'

eachStore(t, 'the pages of links', async (t, start) => {
  const harness = await start({ signUp: true, signUpDomains: ['example.com'], passwordMin: 8 })
  const { kit, browser, user } = harness
  const app = await harness.register()

  await t.test('a person sets a new password without a script, and opening the link does not spend it', async (t) => {
    const bob = browser()
    const { text } = await bob.open(askCode(app).url)
    const href = /href="([^"]*\/forgot)"/.exec(text)?.[1] ?? ''
    const forgot = await bob.open(href)
    t.equal(forgot.title, 'Forgot your password?')
    const sent = await forgot.submit({ typed: user.account })
    t.equal(sent.title, 'Check your email')
    const unknown = await forgot.submit({ typed: 'nobody@example.com' })
    t.equal(withoutIds(unknown.text), withoutIds(sent.text).replaceAll(user.account, 'nobody@example.com'), 'the same page for an unknown one')
    t.equal((await forgot.submit({ typed: 'not an account' })).response.status, 400)
    const { link } = await kit.mails.next({ to: user.account })
    for (let count = 0; count < 10; count++) {
      t.equal((await browser().open(link!)).title, 'Set a new password')
      t.equal((await fetch(link!, { method: 'HEAD' })).status, 200)
    }
    const page = await browser().open(link!)
    t.match((await page.submit({ password: 'short' })).text, /too short/)
    t.match((await page.submit({ password: 'password1' })).text, /common/)
    t.match(await page.submit({ password: 'the second password' }, { origin: 'https://evil.example' }), { response: { status: 403 } })
    t.equal((await page.submit({ password: 'the second password' })).title, 'Your password is set')
    t.match(await page.submit({ password: 'the third password' }), { response: { status: 410 }, text: /This link no longer works\. It was already used/ })
    t.match(await browser().open(link!), { response: { status: 410 } })
    t.ok(await kit.app.identity.users.verify(user.account, 'the second password'))
    await kit.mails.all()
  })

  await t.test('an app opens the sign-up by prompt=create, and gets the new user in the same browser', async (t) => {
    const config = await openid.discovery(new URL(harness.url), app.client_id, app.client_secret, undefined, { execute: [openid.allowInsecureRequests] })
    t.match(config.serverMetadata().prompt_values_supported, ['none', 'login', 'consent', 'select_account', 'create'])
    const pkceCodeVerifier = openid.randomPKCECodeVerifier()
    const request = openid.buildAuthorizationUrl(config, {
      redirect_uri: app.redirect_uri, scope: 'openid email', prompt: 'create', code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier), code_challenge_method: 'S256'
    })
    const bob = browser()
    const page = await bob.open(request.href)
    t.equal(page.title, 'Create an account')
    t.match((await page.submit({ typed: 'bob@elsewhere.example' })).text, 'You can’t sign up with this email address.')
    t.match((await page.submit({ typed: 'bob' })).text, 'Enter an email address, for example')
    t.equal((await page.submit({ typed: EMAIL })).title, 'Check your email')
    t.equal(await kit.app.identity.users.getByAccount(EMAIL), null, 'there is no account yet')
    const { link } = await kit.mails.next({ to: EMAIL })
    t.equal((await browser().open(link!)).title, 'Choose a password', 'another browser')
    const { left } = await (await bob.open(link!)).submit({ password: 'correct horse battery' })
    const tokens = await openid.authorizationCodeGrant(config, left!, { pkceCodeVerifier })
    t.match(await openid.fetchUserInfo(config, tokens.access_token, tokens.claims()!.sub), { email: EMAIL, email_verified: true })
  })

  await t.test('a sign-up for an address that has an account says so by mail only; one can be ended in another browser', async (t) => {
    const page = await browser().open('/account/sign-up')
    const known = await page.submit({ typed: EMAIL })
    const fresh = await page.submit({ typed: 'carl@example.com' })
    t.equal(withoutIds(known.text), withoutIds(fresh.text).replaceAll('carl@example.com', EMAIL))
    t.match(await kit.mails.next({ to: EMAIL }), { subject: /you already have an account/, link: /\/account\/reset\?/ })
    const { link } = await kit.mails.next({ to: 'carl@example.com' })
    t.equal((await (await browser().open(link!)).submit({ password: 'correct horse battery' })).title, 'Your account is ready')
    t.match(await browser().open(link!), { response: { status: 410 } })
  })

  await t.test('somebody who has an account signs in from the page of prompt=create', async (t) => {
    const bob = browser()
    const page = await bob.open(askCode(app, { prompt: 'create' }).url)
    const href = /<p class="next"><a href="([^"]*)"/.exec(page.text)?.[1] ?? ''
    const signIn = await bob.open(href)
    t.equal(signIn.title, 'Sign in')
    const { left } = await signIn.submit({ account: EMAIL, password: 'correct horse battery' })
    t.ok(left?.searchParams.get('code'))
  })

  await t.test('an invitation leads to the app that it came with; an address is confirmed, changed and restored by buttons', async (t) => {
    const { accounts, users } = kit.app.identity
    const admin = { user_id: user.user_id, isAdmin: true }
    const { user_id } = await accounts.inviteUser({ account: 'dora@example.com', return_to: app.redirect_uri, client_id: app.client_id }, admin)
    const invitation = await kit.mails.next({ to: 'dora@example.com' })
    t.equal(await users.verify('dora@example.com', ''), null, 'no password opens it')
    const page = await (await browser().open(invitation.link!)).submit({ password: 'correct horse battery' })
    t.match(page.text, `href="${app.redirect_uri}"`)
    await accounts.changeAddress(user_id, 'dora@example.org')
    const dora = browser()
    await (await dora.open('/account')).submit({ account: 'dora@example.com', password: 'correct horse battery' })
    const change = await dora.open((await kit.mails.next({ to: 'dora@example.org' })).link!)
    t.match(change.text, /dora@example\.org/)
    t.equal((await change.submit()).title, 'Your email address is confirmed')
    const undo = await browser().open((await kit.mails.next({ to: 'dora@example.com' })).link!)
    t.equal((await undo.submit()).title, 'The changes are undone')
    t.match(await users.get(user_id), { email: 'dora@example.com' })
    await kit.mails.all()
  })

  await t.test('the pages are in German for those who read it, and so is the mail', async (t) => {
    const headers = { 'accept-language': 'de-AT,de;q=0.9' }
    const page = await browser().open('/account/forgot', { headers })
    t.match(page.text, /<html lang="de">[^]*Passwort vergessen\?/)
    await page.submit({ typed: EMAIL }, headers)
    t.match(await kit.mails.next({ to: EMAIL }), { subject: /neues Passwort festlegen/, html: /<html lang="de">/ })
  })
})

t.test('without mail there is neither a link to a forgotten password nor a sign-up', async (t) => {
  const { startHarness } = await import('../oidc/harness.ts')
  const harness = await startHarness(t, { mail: undefined as never })
  const app = await harness.register()
  t.notMatch((await harness.browser().open(askCode(app).url)).text, /forgot|sign-up/i)
  t.equal((await harness.browser().open('/account/forgot')).response.status, 404)
  const discovery = await (await fetch(`${harness.url}/.well-known/openid-configuration`)).json() as { prompt_values_supported?: string[] }
  t.notOk(discovery.prompt_values_supported?.includes('create'))
})
