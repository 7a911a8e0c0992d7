import t from 'tap'
import { askCode, eachStore } from '../oidc/harness.ts'

eachStore(t, 'a link is good for its purpose only', async (t, start) => {
  const harness = await start({ signUp: true })
  const { kit, user, browser } = harness
  const { accounts, users } = kit.app.identity
  const app = await harness.register()

  await t.test('on its own page, which spends it', async (t) => {
    await accounts.forgotPassword(user.account, { ip: '192.0.2.1' })
    await accounts.inviteUser({ account: 'guest@example.com' }, { user_id: user.user_id, isAdmin: true })
    await accounts.signUp('new@example.com', { ip: '192.0.2.1' })
    const links = {
      reset: (await kit.mails.next({ to: user.account })).token!,
      invitation: (await kit.mails.next({ to: 'guest@example.com' })).token!,
      'sign-up': (await kit.mails.next({ to: 'new@example.com' })).token!
    }
    for (const [purpose, token] of Object.entries(links)) {
      for (const path of ['reset', 'invitation', 'sign-up', 'verify', 'undo', 'enrol'].filter((path) => path !== purpose)) {
        const tab = browser()
        t.equal((await tab.open(`/account/${path}?token=${token}`)).response.status, 410, `${purpose} opened at ${path}`)
        const body = new URLSearchParams({ token, password: 'another horse' })
        t.equal((await tab.open(`/account/${path}`, { method: 'POST', body, headers: { origin: harness.url } })).response.status, 410, `${purpose} sent to ${path}`)
      }
      const page = await browser().open(`/account/${purpose}?token=${token}`)
      t.equal((await page.submit({ password: 'another horse' })).response.status, 200, `${purpose} was not spent`)
    }
  })

  await t.test('a link for a new password, sent to the sign-up of an interaction, neither signs in nor is spent', async (t) => {
    await kit.mails.all()
    await accounts.forgotPassword(user.account, { ip: '192.0.2.1' })
    await accounts.inviteUser({ account: 'other@example.com' }, { user_id: user.user_id, isAdmin: true })
    for (const to of [user.account, 'other@example.com']) {
      const { token } = await kit.mails.next({ to })
      const thief = browser()
      const form = await thief.open(askCode(app).url)
      const target = `${new URL(form.response.url).pathname}/sign-up`
      t.equal((await thief.open(`${target}?token=${token}`)).response.status, 410)
      const body = new URLSearchParams({ token: token!, password: 'a third horse' })
      const sent = await thief.open(target, { method: 'POST', body, headers: { origin: harness.url } })
      t.match(sent, { response: { status: 410 }, left: undefined })
      t.equal((await thief.open(askCode(app).url)).title, 'Sign in')
      t.equal(await users.verify(to, 'a third horse'), null)
      await accounts.setPassword(token!, 'a third horse')
    }
  })
})
