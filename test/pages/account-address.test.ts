import t from 'tap'
import { eachStore } from '../oidc/harness.ts'
import { addUser, enter, isSignedOut, post } from './visits.ts'

eachStore(t, 'the address', async (t, start) => {
  const harness = await start()
  const { kit, user } = harness
  const { users, accounts } = kit.app.identity
  const page = await enter(harness, '/account/email')
  t.match(page.text, 'You haven’t confirmed <strong><bdi>ann@example.com</bdi></strong> yet.')
  const sent = await post(page, '/account/email', { verify: 'yes' })
  t.match(sent.text, 'We sent a link to your email address.')
  await accounts.verifyAddress((await kit.mails.next({ to: user.account })).token ?? '')
  t.match((await page.browser.open('/account/email')).text, 'Your email address is <strong><bdi>ann@example.com</bdi></strong>.')
  t.equal((await post(page, '/account/email', { verify: 'yes' })).response.status, 400, 'it is verified already')

  const change = { email: 'ann@new.example', current_password: user.password }
  const wrong = await post(page, '/account/email', { ...change, current_password: 'wrong' })
  t.equal(wrong.response.status, 400)
  t.match(wrong.text, 'Your current password is wrong.')
  t.match(wrong.text, 'value="ann@new.example"', 'what was typed stays')
  for (const email of ['', 'no address', '<b>@x', 'ann@example.com', `${'x'.repeat(600)}@example.com`]) {
    const refused = await post(page, '/account/email', { ...change, email })
    t.equal(refused.response.status, 400, email.slice(0, 20))
    t.match(refused.text, 'Enter another email address')
    t.notMatch(refused.text, '<b>')
  }
  await kit.flush()
  t.equal((await users.get(user.user_id))?.email, 'ann@example.com', 'nothing has changed')

  t.match((await post(page, '/account/email', change)).text, 'Open it there to finish the change')
  t.equal((await users.get(user.user_id))?.email, 'ann@example.com')
  await accounts.verifyAddress((await kit.mails.next({ to: 'ann@new.example' })).token ?? '', user.user_id)
  t.equal((await users.get(user.user_id))?.email, 'ann@new.example')

  const dora = await enter(harness, '/account/email', undefined, await addUser(harness, 'dora'))
  t.match(dora.text, 'Your account has no email address.')
  t.notMatch(dora.text, /former address|new address/i, 'nothing is said of an address that there is not')

  kit.clock.advance(10 * 60 * 1000)
  const later = await enter(harness, '/account')
  kit.clock.advance(10 * 60 * 1000)
  t.equal((await later.browser.open('/account/email')).title, 'Confirm it’s you')
  t.equal((await post(later, '/account/email', change)).title, 'Confirm it’s you')
})

eachStore(t, 'deleting the account', async (t, start) => {
  const harness = await start({ selfDelete: true })
  const { kit, user, browser } = harness
  const { users, clients, store } = kit.app.identity
  const ann = { user_id: user.user_id, isAdmin: false }
  const { clientId } = await clients.create({ data: { name: 'Mine', redirectUris: [], scopes: [] } }, ann)
  const elsewhere = await enter(harness)
  const page = await enter(harness, '/account/delete')
  const wrong = await post(page, '/account/delete', { current_password: 'wrong' })
  t.equal(wrong.response.status, 400)
  t.match(wrong.text, 'Your current password is wrong.')
  t.not(await users.get(user.user_id), null)

  const admin = await addUser(harness, 'root')
  await store.collection('users').update(admin.user_id, { set: { roles: { admin: true } } })
  const last = await post(await enter(harness, '/account/delete', browser(), admin), '/account/delete', { current_password: admin.password })
  t.equal(last.response.status, 403)
  t.match(last.text, 'You’re the last administrator.')

  kit.clock.advance(10 * 60 * 1000)
  t.equal((await post(page, '/account/delete', { current_password: user.password })).title, 'Confirm it’s you')
  t.not(await users.get(user.user_id), null, 'a sign-in of ten minutes ago deletes nothing')
  const fresh = await enter(harness, '/account/delete')
  const gone = await post(fresh, '/account/delete', { current_password: user.password })
  t.equal(gone.title, 'Account deleted')
  t.equal(await users.get(user.user_id), null)
  t.equal(await store.collection('clients').get(clientId), null)
  t.ok(isSignedOut(await fresh.browser.open('/account')))
  t.ok(isSignedOut(await elsewhere.browser.open('/account')))
})

eachStore(t, 'pages that the operator has not turned on', async (t, start) => {
  const harness = await start()
  const page = await enter(harness)
  t.notMatch(page.text, 'Delete account')
  t.equal((await page.browser.open('/account/delete')).response.status, 404)
  t.equal((await post(page, '/account/delete', { current_password: harness.user.password })).response.status, 404)
  t.not(await harness.kit.app.identity.users.get(harness.user.user_id), null)
})
