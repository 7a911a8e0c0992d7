import t from 'tap'
import { en } from '../../lib/pages/texts/en.ts'
import { eachStore } from '../oidc/harness.ts'

const PASSWORD = 'correct horse battery'

eachStore(t, 'the end of a sign-up that a stranger began', async (t, start) => {
  const harness = await start({ signUp: true, passwordMin: 8 })
  const { kit, browser, url } = harness
  const { clients } = kit.app.identity
  const uri = 'https://id-example.evil.example/session-expired'

  /** Anybody may begin a sign-up for an address, and name an app of theirs. Resolves to the page after the password was chosen. */
  async function signUp (email: string, clientId: string) {
    const response = await fetch(`${url}/api/v1/auth/sign-up`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ data: { email, clientId, returnTo: uri } })
    })
    t.equal(response.status, 204)
    const { link } = await kit.mails.next({ to: email })
    return await browser().open(link!)
  }
  const OWN = `<a class="button primary" href="/account">${en.common.toAccount}</a>`

  await t.test('leads to a page of the service, and warns of the app', async (t) => {
    const app = await harness.register({ first_party: false, name: 'Sign in again', redirectUris: [uri] })
    const { title, text } = await (await signUp('victim@example.com', app.client_id)).submit({ password: PASSWORD })
    t.equal(title, 'Your account is ready')
    const [own, warning, link] = [OWN, 'This link leads to <bdi>id-example.evil.example</bdi>. This service hasn’t verified that app.', `<a rel="noreferrer" href="${uri}">Continue to <bdi>Sign in again</bdi></a>`].map((part) => text.indexOf(part))
    t.ok(own! > 0 && own! < warning! && warning! < link!, 'the page of the service comes first')
  })

  await t.test('leads to an app that the operator vouches for', async (t) => {
    const app = await harness.register({ first_party: true, name: 'Shop', redirectUris: [uri] })
    const { text } = await (await signUp('second@example.com', app.client_id)).submit({ password: PASSWORD })
    t.match(text, `<a class="button primary" href="${uri}">Continue to <bdi>Shop</bdi></a>`)
    t.notMatch(text, 'hasn’t verified')
    t.notMatch(text, OWN)
  })

  await t.test('is decided when the password is chosen', async (t) => {
    const OPERATOR = { user_id: 'operator', isAdmin: true }
    for (const [email, change, expected] of [
      ['third@example.com', { first_party: false }, true],
      ['fourth@example.com', { redirectUris: ['https://other.example/'] }, false],
      ['fifth@example.com', { disabled: true }, false]
    ] as const) {
      const app = await harness.register({ first_party: true, redirectUris: [uri] })
      const page = await signUp(email, app.client_id)
      await clients.patch(app.client_id, { data: change as Parameters<typeof clients.patch>[1]['data'] & object }, OPERATOR)
      const { text } = await page.submit({ password: PASSWORD })
      t.match(text, OWN)
      t.equal(text.includes(uri), expected)
    }
  })

  await t.test('of an invitation by code of the host, which names no client', async (t) => {
    await kit.app.identity.accounts.inviteUser({ account: 'dora@example.com', return_to: uri }, { user_id: 'operator', isAdmin: true })
    const page = await browser().open((await kit.mails.next({ to: 'dora@example.com' })).link!)
    const { text } = await page.submit({ password: PASSWORD })
    t.match(text, OWN)
    t.match(text, 'leads to <bdi>id-example.evil.example</bdi>')
  })
})
