import { createToken, hashToken } from '../../lib/crypto/random-token.ts'
import type { TicketRecord } from '../../lib/tickets/tickets.ts'
import type { EventType } from '../../lib/events/types.ts'
import { toWayKey } from '../../lib/way.ts'
import { isForPrograms } from '../../plugins/oidc.ts'
import { createApp } from '../../testing/kit.ts'
import { createTestKey } from '../helpers/assertions.ts'
import { unique } from '../helpers/people.ts'
import type { Browser, Page } from '../oidc/browser.ts'
import { type App, type Harness, askCode, atLocalhost, getCode, type startHarness } from '../oidc/harness.ts'
import { answerOf, leave } from '../upstreams/through.ts'
import { enrol, nextCode, pathOf, readCodes, readHidden, readSeed } from '../pages/factors.ts'
import { answer, beginPasskey, enrolPasskey } from '../pages/passkeys.ts'
import { enter, post, readXsrf } from '../pages/visits.ts'

export interface Person { user_id: string, account: string, password: string }

export interface Scene extends Harness {
  /** An app that the operator vouches for, and one that must ask for consent. */
  own: App
  foreign: App
  /** Makes a user. */
  add: () => Promise<Person>
  /** Signs a new user in, in a new browser. */
  arrive: (path?: string) => Promise<{ person: Person, page: Page, tab: Browser }>
  /** The token and the link of the next mail to this address. */
  mailed: (to: string) => Promise<{ token: string, link: string }>
  /** A text that no event may have. */
  secret: (text: string) => string
}

/** Sends the prepared form. Resolves to the id of the person who is, or was, signed in at its end. */
type Act = () => Promise<string | undefined>

/** The form of a page in one of its states: `type` of each event in their order, and `by them` where the person is known. */
type Case = [what: string, leads: (EventType | `${EventType} by them`)[], prepare: (scene: Scene) => Promise<Act>]

const NEW_PASSWORD = 'another horse'

/** Opens an authorization request in a new browser, and submits its forms up to the one with this title. */
async function openForm ({ browser }: Scene, app: App, title: RegExp, { person, params = {}, tab = browser() }: { person?: Person, params?: Record<string, string>, tab?: Browser } = {}): Promise<Page> {
  let page = await tab.open(askCode(app, params).url)
  if (!title.test(page.title) && person !== undefined) page = await page.submit({ account: person.account, password: person.password })
  if (!title.test(page.title)) throw new Error(`the page is '${page.title}'`)
  return page
}

/** The form for a forgotten password, in the sign-in to an app. */
async function openForgot (scene: Scene): Promise<Page> {
  const page = await openForm(scene, scene.own, /^Sign in/)
  return await page.browser.open(/href="([^"]*\/forgot)"/.exec(page.text)?.[1] ?? '')
}

/** A token session of the person that ends with their browser session. */
async function bind (scene: Scene, person: Person, tab: Browser, app = scene.own, scope = 'openid'): Promise<string> {
  const { body } = await scene.post('token', await getCode({ ...scene, user: person }, app, { scope }, tab), app)
  for (const name of ['access_token', 'refresh_token', 'id_token']) if (typeof body[name] === 'string') scene.secret(body[name])
  return String(body.id_token)
}

const ofAddress = (prepare: (scene: Scene, person: Person) => Promise<string>, path: string, by: boolean): Case[2] => async (scene) => {
  const person = await scene.add()
  const link = await prepare(scene, person)
  const page = await scene.browser().open(link)
  if (!page.response.url.includes(path)) throw new Error(page.response.url)
  return async () => {
    const done = await page.submit(by ? { password: scene.secret(NEW_PASSWORD) } : {})
    if (done.response.status !== 200) throw new Error(done.text)
    const [, account = ''] = /name="username"[^>]* value="([^"]*)"/.exec(page.text) ?? []
    return by ? (await scene.kit.app.identity.users.getByAccount(account))!.user_id : undefined
  }
}

async function requestDevice (scene: Scene, app: App): Promise<string> {
  const { body } = await scene.post('device_authorization', { scope: 'openid' }, app)
  scene.secret(String(body.device_code))
  return scene.secret(String(body.user_code))
}

const enterCode = async (scene: Scene, tab: Browser, app: App) => (
  await (await tab.open('/api/v1/auth/device')).submit({ user_code: await requestDevice(scene, app) }))

const change = async ({ kit, mailed }: Scene, { user_id }: Person, email = `${unique('new')}@example.com`) => {
  await kit.app.identity.accounts.changeAddress(user_id, email)
  return (await mailed(email)).link
}

async function createOwnClient ({ kit, secret }: Scene, user_id: string): Promise<string> {
  const { clients } = kit.app.identity
  const actor = { user_id, isAdmin: false }
  const { clientId } = await clients.create({ data: { name: 'Mine', redirectUris: [], scopes: [] }, credentials: true }, actor)
  secret((await clients.require(clientId, actor)).clientSecret ?? '')
  return clientId
}

/** A form of the account pages that a new person sends from there. */
const sends = (path: string, fields: (scene: Scene, person: Person) => Record<string, string> | Promise<Record<string, string>>, status = 200): Case[2] => async (scene) => {
  const { person, page } = await scene.arrive()
  const given = await fields(scene, person)
  return async () => {
    const { response, text } = await post(page, path, given)
    if (response.status !== status) throw new Error(`${response.status} ${text}`)
    return person.user_id
  }
}

const withClient = (fields: Record<string, string> | ((scene: Scene, clientId: string, actor: { user_id: string, isAdmin: boolean }) => Promise<Record<string, string>>)): Case[2] => async (scene) => {
  const { person, page } = await scene.arrive()
  const clientId = await createOwnClient(scene, person.user_id)
  const given = typeof fields === 'function' ? await fields(scene, clientId, { user_id: person.user_id, isAdmin: false }) : fields
  return async () => {
    const { text } = await post(page, `/account/clients/${clientId}`, given)
    for (const [, shown = ''] of text.matchAll(/id="secret">([^<]*)/g)) scene.secret(shown)
    return person.user_id
  }
}

/** A new person who has begun to add an authenticator app, and its seed. */
async function beginFactor (scene: Scene): Promise<{ person: Person, page: Page, seed: string }> {
  const { person, page } = await scene.arrive('/account/methods')
  const begun = await post(page, '/account/factors', { name: 'Phone', current_password: person.password })
  return { person, page: begun, seed: scene.secret(readSeed(begun)) }
}

/** A new person with an authenticator app, which they have added on its page. */
async function arriveWithFactor (scene: Scene): Promise<{ person: Person, page: Page, seed: string }> {
  const { person, page } = await scene.arrive()
  const { page: done, seed, codes } = await enrol(scene.kit.clock, page, person.password)
  for (const text of [seed, ...codes]) scene.secret(text)
  return { person, page: done, seed }
}

/** The provider's answer about somebody new, for a browser that goes there from this page. */
async function meet ({ kit, secret }: Scene, page: Page, claims: { email?: string, email_verified?: boolean } = {}): Promise<string> {
  kit.upstream({ sub: secret(unique('subject')), ...claims })
  return await answerOf(await leave(page.browser, page))
}

/** The provider's answer to a form of a page, by which the browser leaves. */
async function meetByForm ({ kit, secret }: Scene, page: Page, path: string, fields: Record<string, string> = {}): Promise<string> {
  kit.upstream({ sub: secret(unique('subject')) })
  return await answerOf((await post(page, path, { upstream: 'test', ...fields })).left)
}

/** The form of a link that another provider completes. */
const byProvider = (path: string, ask: (scene: Scene, account: string) => Promise<unknown>): Case[2] => async (scene) => {
  const account = scene.secret(`${unique('guest')}@example.com`)
  await ask(scene, account)
  const { link, token } = await scene.mailed(account)
  const page = await scene.browser().open(link)
  return async () => {
    const done = await page.browser.open(await meetByForm(scene, page, path, { token }))
    if (done.title !== 'Your account is ready') throw new Error(done.text)
    return undefined
  }
}

/** Every form of a page, by its route. */
export const FORMS: Record<string, Case[]> = {
  '/account/sign-in': [
    ['a passkey', ['sign_in.succeeded by them'], async (scene) => {
      const { person, page } = await scene.arrive()
      const { key } = await enrolPasskey(page, { current_password: person.password })
      const form = await scene.browser().open('/account')
      return async () => {
        await post(form, form.response.url, { way: 'passkey', ...answer(form, key) })
        return person.user_id
      }
    }],
    ['a passkey with another signature', ['factor.failed'], async (scene) => {
      const { person, page } = await scene.arrive()
      const { key } = await enrolPasskey(page, { current_password: person.password })
      const form = await scene.browser().open('/account')
      return async () => {
        await post(form, form.response.url, { way: 'passkey', ...answer(form, key, { signature: (bytes) => bytes.subarray(1) }) })
        return person.user_id
      }
    }],
    ['the right password', ['sign_in.succeeded by them'], async (scene) => {
      const [person, form] = [await scene.add(), await scene.browser().open('/account')]
      return async () => {
        await post(form, form.response.url, { account: person.account, password: person.password })
        return person.user_id
      }
    }],
    ['a wrong password', ['sign_in.failed'], async (scene) => {
      const [person, form] = [await scene.add(), await scene.browser().open('/account')]
      return async () => {
        await post(form, form.response.url, { account: person.account, password: scene.secret('not their password') })
        return undefined
      }
    }],
    ['an unknown account', ['sign_in.failed'], async ({ browser, secret }) => {
      const form = await browser().open('/account')
      return async () => {
        await post(form, form.response.url, { account: secret('typed-in-the-wrong-field'), password: secret('and this too') })
        return undefined
      }
    }],
    ['no sign-in', [], async ({ browser }) => {
      const form = await browser().open('/account')
      return async () => {
        await post(form, form.response.url, { cancel: 'yes' })
        return undefined
      }
    }],
    ['a verification code', ['sign_in.succeeded by them'], async (scene) => {
      const { person, seed } = await arriveWithFactor(scene)
      const step = await enter(scene, '/account', scene.browser(), person)
      const code = scene.secret(await nextCode(scene.kit.clock, seed))
      return async () => {
        await step.submit({ code })
        return person.user_id
      }
    }],
    ['somebody else in the same browser', ['sign_in.succeeded by them', 'browser.signed_out by them'], async (scene) => {
      const { tab } = await scene.arrive()
      const other = await scene.add()
      scene.kit.clock.advance(10 * 60_000)
      const form = await tab.open('/account/password')
      return async () => {
        await post(form, form.response.url, { account: other.account, password: other.password })
        return other.user_id
      }
    }]
  ],
  '/account/sign-out': [['with an app', ['browser.signed_out by them', 'session.ended by them'], async (scene) => {
    const { person, tab } = await scene.arrive()
    await bind(scene, person, tab)
    const page = await tab.open('/account')
    return async () => {
      await post(page, '/account/sign-out')
      return person.user_id
    }
  }]],
  '/account': [['a name', ['user.updated by them'], sends('/account', ({ secret }) => ({ name: secret('Ann the Second') }))]],
  '/account/password': [
    ['a new password', ['user.password_changed by them'], sends('/account/password', ({ secret }, { password }) => ({ current_password: password, password: secret(NEW_PASSWORD) }))],
    ['a wrong current password', ['user.confirmation_failed by them'], sends('/account/password', ({ secret }) => ({ current_password: 'not their password', password: secret(NEW_PASSWORD) }), 400)]
  ],
  // Its removal: test/pages/remove-password.test.ts.
  '/account/password/remove': [['the only way in', [], sends('/account/password/remove', (_scene, { password }) => ({ current_password: password }), 403)]],
  '/account/email': [
    ['a link to the address', ['user.verification_requested by them'], sends('/account/email', () => ({ verify: 'yes' }))],
    ['another address', ['user.email_change_requested by them'], sends('/account/email', ({ secret }, { password }) => ({ email: secret('changed@example.com'), current_password: password }))],
    ['a wrong current password', ['user.confirmation_failed by them'], sends('/account/email', () => ({ email: 'changed@example.com', current_password: 'not their password' }), 400)]
  ],
  '/account/tokens/new': [
    ['a token', ['token.personal_created by them'], sends('/account/tokens/new', ({ kit }, { password }) => ({
      name: 'Nightly', expires: new Date(kit.clock.now()).toISOString().slice(0, 10), place: 'here', 'scope-here': 'account:read', current_password: password
    }))],
    ['a wrong current password', ['user.confirmation_failed by them'], sends('/account/tokens/new', ({ kit }) => ({
      name: 'Nightly', expires: new Date(kit.clock.now()).toISOString().slice(0, 10), place: 'here', current_password: 'not their password'
    }), 400)]
  ],
  '/account/tokens': [
    ['the question', [], sends('/account/tokens', async ({ kit }, { user_id }) => ({ token: (await kit.personalToken(user_id)).id }))],
    ['the end of one', ['token.personal_removed by them'], sends('/account/tokens', async ({ kit }, { user_id }) => (
      { token: (await kit.personalToken(user_id)).id, confirm: 'yes' }))]
  ],
  '/account/data': [
    ['a download', ['user.exported by them'], sends('/account/data', (_scene, { password }) => ({ current_password: password }))],
    ['a wrong current password', ['user.confirmation_failed by them'], sends('/account/data', () => ({ current_password: 'not their password' }), 400)]
  ],
  '/account/delete': [
    ['the account and a client', ['client.deleted by them', 'user.deleted by them'], sends('/account/delete', async (scene, { user_id, password }) => {
      await createOwnClient(scene, user_id)
      return { current_password: password }
    })],
    ['a wrong current password', ['user.confirmation_failed by them'], sends('/account/delete', () => ({ current_password: 'not their password' }), 400)]
  ],
  '/account/factors': [
    ['an app that is begun', [], sends('/account/factors', (_scene, { password }) => ({ name: 'Phone', current_password: password }))],
    ['a wrong current password', ['user.confirmation_failed by them'], sends('/account/factors', () => ({ current_password: 'not their password' }), 400)]
  ],
  '/account/factors/add': [['the first code of the app', [], async (scene) => {
    const { person, page, seed } = await beginFactor(scene)
    return async () => {
      for (const code of readCodes(await post(page, pathOf(page), { code: await nextCode(scene.kit.clock, seed) }))) scene.secret(code)
      return person.user_id
    }
  }]],
  '/account/factors/codes': [['the codes that were kept', ['factor.added by them'], async (scene) => {
    const { person, page, seed } = await beginFactor(scene)
    const shown = await post(page, pathOf(page), { code: await nextCode(scene.kit.clock, seed) })
    for (const code of readCodes(shown)) scene.secret(code)
    return async () => {
      await post(shown, '/account/factors/codes', { codes: readHidden(shown, 'codes'), factor: readHidden(shown, 'factor'), kept: 'yes' })
      return person.user_id
    }
  }]],
  '/account/factors/remove': [['an app', ['factor.removed by them', 'user.sessions_ended by them'], async (scene) => {
    const { person, page, seed } = await arriveWithFactor(scene)
    const { factors: [app] } = await scene.kit.app.identity.heldFactors.list(person.user_id)
    const form = await page.browser.open(`/account/factors/remove?id=${app!.factor_id}`)
    return async () => {
      await post(form, pathOf(form), { current_password: person.password, code: await nextCode(scene.kit.clock, seed), end_sessions: 'yes' })
      return person.user_id
    }
  }]],
  '/account/enrol': [['the link of a reset, which the browser carries to the sign-in', [], async (scene) => {
    const person = await scene.add()
    const { kit } = scene
    const token = scene.secret(createToken())
    const ticket = hashToken(token)
    const time = new Date(kit.clock.now()).toISOString()
    await kit.app.identity.store.collection<TicketRecord>('tickets').insert({ id: ticket, purpose: 'enrol', holder: `enrol ${person.user_id}`, user_id: person.user_id, mailed: true, created_at: time, expired_at: new Date(kit.clock.now() + 3_600_000).toISOString() })
    await kit.app.identity.store.collection('users').update(person.user_id, { set: { enrol_ticket: ticket } })
    const page = await scene.browser().open(`/account/enrol?token=${token}`)
    return async () => {
      await page.submit()
      return undefined
    }
  }]],
  '/account/factors/rename': [['an app', [], async (scene) => {
    const { person, page } = await arriveWithFactor(scene)
    const { factors: [app] } = await scene.kit.app.identity.heldFactors.list(person.user_id)
    const form = await page.browser.open(`/account/factors/rename?id=${app!.factor_id}`)
    return async () => {
      await post(form, pathOf(form), { name: 'Tablet' })
      return person.user_id
    }
  }]],
  '/account/factors/passkeys': [
    ['the proof', [], async (scene) => {
      const { person, page } = await scene.arrive()
      return async () => {
        await beginPasskey(page, { current_password: person.password })
        return person.user_id
      }
    }],
    ['a new passkey, with its codes', ['factor.added by them'], async (scene) => {
      const { person, page } = await scene.arrive()
      return async () => {
        for (const code of (await enrolPasskey(page, { current_password: person.password })).codes) scene.secret(code)
        return person.user_id
      }
    }]
  ],
  '/account/undo': [
    ['the first app of somebody else', ['factor.undone'], async (scene) => {
      const { person } = await arriveWithFactor(scene)
      const page = await scene.browser().open((await scene.mailed(person.account)).link)
      return async () => {
        await page.submit()
        return undefined
      }
    }],
    ['an identity of somebody else', ['identity.unlinked'], async (scene) => {
      const { person: { user_id, account } } = await scene.arrive()
      await scene.kit.app.identity.accounts.linkIdentity({ user_id, epoch: 0 }, { kind: 'upstream', upstream: 'corp', key: toWayKey('upstream', 'corp', account), material: {} }, 'Corp')
      const page = await scene.browser().open((await scene.mailed(account)).link)
      return async () => {
        await page.submit()
        return undefined
      }
    }],
    ['a change', ['user.email_restored'], ofAddress(async (scene, person) => {
      const token = URL.parse(await change(scene, person))?.searchParams.get('token')
      await scene.kit.app.identity.accounts.verifyAddress(token ?? '', person.user_id)
      return (await scene.mailed(person.account)).link
    }, '/account/undo', false)]
  ],
  '/account/sessions': [
    ['a browser, with an app', ['browser.signed_out by them', 'session.ended by them'], sends('/account/sessions', async (scene, person) => {
      const { browser } = scene
      const tab = browser()
      await bind(scene, person, tab)
      const { entries } = await scene.kit.app.identity.ownSessions.listTokenSessions(person.user_id)
      return { browser: entries[0]?.session_uid ?? '' }
    })],
    ['an app', ['session.ended by them'], sends('/account/sessions', async (scene, person) => {
      await bind(scene, person, scene.browser(), scene.own, 'openid offline_access')
      const { entries } = await scene.kit.app.identity.ownSessions.listTokenSessions(person.user_id)
      return { session: entries[0]?.session_id ?? '' }
    })],
    ['all others', ['user.sessions_ended by them'], sends('/account/sessions', () => ({ others: 'yes' }))],
    ['none', [], sends('/account/sessions', () => ({ session: 'none' }), 404)]
  ],
  '/account/apps': [
    ['the question', [], sends('/account/apps', async (scene, person) => {
      await bind(scene, person, scene.browser(), scene.foreign)
      return { client: scene.foreign.client_id }
    })],
    ['an app', ['session.ended by them', 'app.disconnected by them'], sends('/account/apps', async (scene, person) => {
      await bind(scene, person, scene.browser(), scene.foreign)
      return { client: scene.foreign.client_id, confirm: 'yes' }
    })]
  ],
  '/account/clients/:clientId': [
    ['the secret', [], withClient({ action: 'show' })],
    ['the question', [], withClient({ action: 'renew' })],
    ['one more secret', ['client.secret_added by them'], withClient(async ({ kit }, clientId, actor) => ({ action: 'add', name: 'Nightly', match: (await kit.app.identity.clients.listSecrets(clientId, actor)).tag }))],
    ['one that is refused', [], withClient({ action: 'add', name: 'Nightly' })],
    ['the question about one', [], withClient({ action: 'remove', secret: 'first' })],
    ['the end of one', ['client.secret_removed by them'], withClient({ action: 'remove', secret: 'first', confirm: 'yes' })],
    ['a key', ['client.keys_changed by them'], withClient({ action: 'add-key', key: JSON.stringify(createTestKey('ES256').jwk) })],
    ['a key that is refused', [], withClient(async ({ secret }) => ({ action: 'add-key', key: secret(JSON.stringify(createTestKey('ES256').privateKey.export({ format: 'jwk' }))) }))],
    ['the end of a key', ['client.keys_changed by them'], withClient(async ({ kit }, clientId, actor) => {
      const [added] = await kit.app.identity.clients.addKeys(clientId, { keys: [createTestKey('ES256').jwk] }, actor)
      return { action: 'remove-key', key: added!.id, confirm: 'yes' }
    })],
    ['a new secret', ['client.secret_changed by them'], withClient({ action: 'renew', confirm: 'yes' })],
    ['the end', ['client.deleted by them'], withClient({ action: 'delete', confirm: 'yes' })]
  ],
  // A mail is sent, or none. The answer and the work are the same.
  '/account/forgot': (['known', 'unknown'] as const).map((kind): Case => [`${kind} account`, [], async (scene) => {
    const typed = kind === 'known' ? (await scene.add()).account : scene.secret('forgotten-by-nobody@example.com')
    const page = await scene.browser().open('/account/forgot')
    return async () => {
      await page.submit({ typed })
      if (kind === 'known') await scene.mailed(typed)
      return undefined
    }
  }]),
  '/account/sign-up': [
    ['an address', [], async ({ browser, secret, mailed }) => {
      const page = await browser().open('/account/sign-up')
      return async () => {
        await page.submit({ typed: secret('asked-first@example.com') })
        await mailed('asked-first@example.com')
        return undefined
      }
    }],
    ['a password', ['user.signed_up', 'sign_in.succeeded by them'], async ({ kit, browser, secret, mailed }) => {
      await kit.app.identity.accounts.signUp(secret('signed-up@example.com'), { ip: '192.0.2.1' })
      const page = await browser().open((await mailed('signed-up@example.com')).link)
      return async () => {
        await page.submit({ password: secret(NEW_PASSWORD) })
        return (await kit.app.identity.users.getByAccount('signed-up@example.com'))!.user_id
      }
    }],
    ['another provider', ['user.signed_up', 'identity.linked'], byProvider('/account/sign-up', async ({ kit }, account) => await kit.app.identity.accounts.signUp(account, { ip: '192.0.2.1' }))]
  ],
  '/account/reset': [
    ['which proves the address', ['user.password_reset', 'user.verified', 'sign_in.succeeded by them'], ofAddress(async ({ kit, mailed }, { account }) => {
      await kit.app.identity.accounts.forgotPassword(account, { ip: '192.0.2.1' })
      return (await mailed(account)).link
    }, '/account/reset', true)],
    ['of a proved address', ['user.password_reset', 'sign_in.succeeded by them'], ofAddress(async ({ kit, mailed }, { user_id, account }) => {
      const { accounts } = kit.app.identity
      await accounts.sendVerification(user_id)
      await accounts.verifyAddress((await mailed(account)).token)
      await accounts.forgotPassword(account, { ip: '192.0.2.1' })
      return (await mailed(account)).link
    }, '/account/reset', true)]
  ],
  '/account/invitation': [
    ['a password', ['user.password_reset', 'user.verified', 'sign_in.succeeded by them'], ofAddress(async ({ kit, mailed }) => {
      const account = `${unique('guest')}@example.com`
      await kit.app.identity.accounts.inviteUser({ account }, { user_id: 'admin', isAdmin: true })
      return (await mailed(account)).link
    }, '/account/invitation', true)],
    ['another provider', ['identity.linked', 'user.verified'], byProvider('/account/invitation', async ({ kit }, account) => await kit.app.identity.accounts.inviteUser({ account }, { user_id: 'admin', isAdmin: true }))]
  ],
  '/account/sign-in/upstream': [
    ['the name of a new account', ['user.signed_up', 'identity.linked', 'sign_in.succeeded by them'], async (scene) => {
      const page = await scene.browser().open('/account/sign-in')
      const form = await page.browser.open(await meet(scene, page))
      const account = scene.secret(unique('named'))
      return async () => {
        await form.submit({ account })
        return (await scene.kit.app.identity.users.getByAccount(account))!.user_id
      }
    }],
    ['another account in the same browser', ['user.signed_up', 'identity.linked', 'sign_in.succeeded by them', 'browser.signed_out by them'], async (scene) => {
      const { tab } = await scene.arrive()
      const account = scene.secret(`${unique('other')}@example.com`)
      scene.kit.upstream({ sub: scene.secret(unique('subject')), email: account, email_verified: true })
      const form = await tab.open(await answerOf(await leave(tab, '/api/v1/auth/upstream/test')))
      return async () => {
        await form.submit()
        return (await scene.kit.app.identity.users.getByAccount(account))!.user_id
      }
    }]
  ],
  '/account/identities/add': [['an identity', ['identity.linked by them'], async (scene) => {
    const { person, tab } = await scene.arrive()
    const page = await tab.open('/account/methods')
    return async () => {
      await tab.open(await meetByForm(scene, page, '/account/identities/add?upstream=test', { current_password: person.password }))
      return person.user_id
    }
  }]],
  '/account/identities/remove': [['an identity', ['identity.unlinked by them', 'user.sessions_ended by them'], async (scene) => {
    const { person, tab } = await scene.arrive()
    const page = await tab.open('/account/methods')
    await tab.open(await meetByForm(scene, page, '/account/identities/add?upstream=test', { current_password: person.password }))
    const { identity_id } = (await scene.kit.app.identity.heldIdentities.list(person.user_id))[0]!
    const form = await tab.open(`/account/identities/remove?id=${identity_id}`)
    return async () => {
      await post(form, pathOf(form), { current_password: person.password, end_sessions: 'yes' })
      return person.user_id
    }
  }]],
  '/api/v1/auth/upstream/:id/callback': [['a form, where the provider sends none', [], async ({ browser }) => async () => {
    await browser().open('/api/v1/auth/upstream/test/callback', { method: 'POST', body: new URLSearchParams({ state: 'x', code: 'y' }) })
    return undefined
  }]],
  '/api/v1/auth/interaction/:uid/upstream': [['the name of a new account', ['user.signed_up', 'identity.linked', 'sign_in.succeeded by them'], async (scene) => {
    const page = await openForm(scene, scene.own, /^Sign in$/)
    const form = await page.browser.open(await meet(scene, page))
    const account = scene.secret(unique('named'))
    return async () => {
      scene.secret((await form.submit({ account })).left?.searchParams.get('code') ?? '')
      return (await scene.kit.app.identity.users.getByAccount(account))!.user_id
    }
  }]],
  '/account/verify': [
    ['the first address', ['user.verified'], ofAddress(async ({ kit, mailed }, { user_id, account }) => {
      await kit.app.identity.accounts.sendVerification(user_id)
      return (await mailed(account)).link
    }, '/account/verify', false)],
    ['another one', ['user.email_changed by them'], async (scene) => {
      const { person, tab } = await scene.arrive()
      const page = await tab.open(await change(scene, person))
      return async () => {
        await page.submit()
        return person.user_id
      }
    }],
    ['another one, in a browser without a sign-in', [], async (scene) => {
      const page = await scene.browser().open(await change(scene, await scene.add()))
      return async () => {
        await page.submit()
        return undefined
      }
    }],
    ['another one, in a browser of somebody else', ['browser.signed_out by them'], async (scene) => {
      const { person, tab } = await scene.arrive()
      const page = await tab.open(await change(scene, await scene.add()))
      return async () => {
        await page.submit({ 'sign-out': 'yes' })
        return person.user_id
      }
    }]
  ],
  '/api/v1/auth/authorize': [['a request', [], async ({ browser, own }) => {
    const tab = browser()
    return async () => {
      await tab.open('/api/v1/auth/authorize', { method: 'POST', body: new URL(askCode(own).url, tab.origin).searchParams })
      return undefined
    }
  }]],
  '/api/v1/auth/interaction/:uid': [
    ['the right password', ['sign_in.succeeded by them'], async (scene) => {
      const [person, page] = [await scene.add(), await openForm(scene, scene.own, /^Sign in$/)]
      return async () => {
        await page.submit({ account: person.account, password: person.password })
        return person.user_id
      }
    }],
    ['a verification code', ['sign_in.succeeded by them'], async (scene) => {
      const { person, seed } = await arriveWithFactor(scene)
      const step = await openForm(scene, scene.own, /verification code/, { person })
      const code = scene.secret(await nextCode(scene.kit.clock, seed))
      return async () => {
        await step.submit({ code })
        return person.user_id
      }
    }],
    ['a wrong password', ['sign_in.failed'], async (scene) => {
      const [person, page] = [await scene.add(), await openForm(scene, scene.own, /^Sign in$/)]
      return async () => {
        await page.submit({ account: person.account, password: 'not their password' })
        return undefined
      }
    }],
    ['no sign-in', [], async (scene) => {
      const page = await openForm(scene, scene.own, /^Sign in$/)
      return async () => {
        await page.submit({ cancel: 'yes' })
        return undefined
      }
    }],
    ['the page after a recovery code', [], async (scene) => {
      const person = await scene.add()
      const { recoveryCodes: [code = ''] } = await scene.kit.totp(person.user_id)
      const second = await openForm(scene, scene.own, /^Enter your verification code$/, { person })
      const page = await second.submit({ way: 'recovery', code })
      if (page.title !== 'You’re signed in with a backup code') throw new Error(`the page is '${page.title}'`)
      return async () => {
        scene.secret((await page.submit()).left?.searchParams.get('code') ?? '')
        return person.user_id
      }
    }],
    ['consent', ['app.connected by them'], async (scene) => {
      const person = await scene.add()
      const page = await openForm(scene, scene.foreign, /^Continue/, { person })
      return async () => {
        scene.secret((await page.submit({ decision: 'allow' })).left?.searchParams.get('code') ?? '')
        return person.user_id
      }
    }],
    ['consent to a device', ['app.connected by them', 'device.connected by them'], async (scene) => {
      const { person, tab } = await scene.arrive()
      const page = await enterCode(scene, tab, scene.foreign)
      return async () => {
        const done = await page.submit({ decision: 'allow' })
        if (done.title !== 'Device connected') throw new Error(done.title)
        return person.user_id
      }
    }],
    ['no consent to a device', [], async (scene) => {
      const page = await enterCode(scene, (await scene.arrive()).tab, scene.foreign)
      return async () => {
        await page.submit({ decision: 'deny' })
        return undefined
      }
    }],
    ['no consent', [], async (scene) => {
      const page = await openForm(scene, scene.foreign, /^Continue/, { person: await scene.add() })
      return async () => {
        await page.submit({ decision: 'deny' })
        return undefined
      }
    }],
    ['somebody else in the same browser', ['sign_in.succeeded by them', 'browser.signed_out by them'], async (scene) => {
      const other = await scene.add()
      const page = await openForm(scene, scene.foreign, /^Continue/, { person: await scene.add() })
      const form = await page.browser.open(`${new URL(page.response.url).pathname}?account=other`)
      return async () => {
        await form.submit({ account: other.account, password: other.password })
        return other.user_id
      }
    }]
  ],
  '/api/v1/auth/interaction/:uid/forgot': [
    ['an account', [], async (scene) => {
      const page = await openForgot(scene)
      return async () => {
        await page.submit({ typed: scene.secret('nobody-at-all@example.com') })
        return undefined
      }
    }]
  ],
  '/api/v1/auth/interaction/:uid/reset': [
    ['in the same browser', ['user.password_reset', 'user.verified', 'sign_in.succeeded by them'], async (scene) => {
      const { user_id, account } = await scene.add()
      const page = await openForgot(scene)
      await page.submit({ typed: account })
      const form = await page.browser.open((await scene.mailed(account)).link)
      return async () => {
        const { left } = await form.submit({ password: scene.secret(NEW_PASSWORD) })
        scene.secret(left!.searchParams.get('code')!)
        return user_id
      }
    }]
  ],
  '/api/v1/auth/interaction/:uid/sign-up': [
    ['an address', [], async (scene) => {
      const page = await openForm(scene, scene.own, /^Create/, { params: { prompt: 'create' } })
      return async () => {
        await page.submit({ typed: scene.secret('asked-second@example.com') })
        return undefined
      }
    }],
    ['a password, in the same browser', ['user.signed_up', 'sign_in.succeeded by them'], async (scene) => {
      const account = scene.secret('signed-in-at-once@example.com')
      const page = await openForm(scene, scene.own, /^Create/, { params: { prompt: 'create' } })
      await page.submit({ typed: account })
      const form = await page.browser.open((await scene.mailed(account)).link)
      return async () => {
        const { left } = await form.submit({ password: scene.secret(NEW_PASSWORD) })
        scene.secret(left!.searchParams.get('code')!)
        return (await scene.kit.app.identity.users.getByAccount(account))!.user_id
      }
    }],
    ['another provider, in the same browser', ['user.signed_up', 'identity.linked', 'sign_in.succeeded by them'], async (scene) => {
      const account = scene.secret(`${unique('at-once')}@example.com`)
      const page = await openForm(scene, scene.own, /^Create/, { params: { prompt: 'create' } })
      await page.submit({ typed: account })
      const { link, token } = await scene.mailed(account)
      const form = await page.browser.open(link)
      return async () => {
        const { left } = await form.browser.open(await meetByForm(scene, form, new URL(link).pathname, { token }))
        scene.secret(left!.searchParams.get('code')!)
        return (await scene.kit.app.identity.users.getByAccount(account))!.user_id
      }
    }]
  ],
  '/api/v1/auth/session/end': [['a request', [], async ({ browser }) => {
    const tab = browser()
    return async () => {
      await tab.open('/api/v1/auth/session/end', { method: 'POST', body: new URLSearchParams() })
      return undefined
    }
  }]],
  '/api/v1/auth/session/end/confirm': [
    ['sign-out of all', ['browser.signed_out by them', 'session.ended by them'], async (scene) => {
      const { person, tab } = await scene.arrive()
      await bind(scene, person, tab)
      const page = await tab.open('/api/v1/auth/session/end')
      return async () => {
        await page.submit({ logout: 'yes' })
        return person.user_id
      }
    }],
    ['sign-out of the app that asks', ['session.ended by them'], async (scene) => {
      const { person, tab } = await scene.arrive()
      const id_token_hint = await bind(scene, person, tab)
      const page = await tab.open(`/api/v1/auth/session/end?${new URLSearchParams({ id_token_hint })}`)
      return async () => {
        await page.submit()
        return person.user_id
      }
    }]
  ],
  '/api/v1/auth/device': [
    ['a code', [], async (scene) => {
      const user_code = await requestDevice(scene, scene.own)
      const page = await scene.browser().open('/api/v1/auth/device')
      return async () => {
        await page.submit({ user_code })
        return undefined
      }
    }],
    ['a code of somebody who is signed in', [], async (scene) => {
      const { tab } = await scene.arrive()
      const user_code = await requestDevice(scene, scene.foreign)
      const page = await tab.open('/api/v1/auth/device')
      return async () => {
        const consent = await page.submit({ user_code })
        if (!consent.title.startsWith('Continue to')) throw new Error(consent.title)
        return undefined
      }
    }],
    ['a code of a link that is refused', [], async (scene) => {
      const { tab } = await scene.arrive()
      const page = await tab.open(`/api/v1/auth/device?${new URLSearchParams({ user_code: await requestDevice(scene, scene.own) })}`)
      return async () => {
        await page.submit({ abort: 'yes' })
        return undefined
      }
    }]
  ]
}

/** The routes of forms: all but those of the API and of programs. */
function collectForms (app: ReturnType<typeof createApp>): Set<string> {
  const routes = new Set<string>()
  app.addHook('onRoute', ({ method, url, schema = {} }) => {
    const isForm = [method].flat().includes('POST') && !('operationId' in schema) && !isForPrograms(url)
    if (isForm) routes.add(url)
  })
  return routes
}

/**
 * @param start starts the service with these options
 * @param createBrowser makes the browsers; absent: they are those of the harness
 */
export async function openScene (start: (options: NonNullable<Parameters<typeof startHarness>[1]>) => Promise<Harness>, createBrowser?: (origin: string) => Browser) {
  const app = createApp()
  const routes = collectForms(app)
  const requests = new Map<string, string>()
  app.addHook('onRequest', async ({ id, method, routeOptions: { url = '' } }) => { requests.set(id, `${method} ${url}`) })
  const harness = await start({ app, signUp: true, selfDelete: true, personalTokens: { maxDays: 30 }, upstream: {}, ...await atLocalhost() })
  const { kit } = harness
  const secrets = new Set<string>()
  const secret = (text: string) => {
    secrets.add(text)
    return text
  }
  const add = async () => {
    const account = `${unique('person')}@example.com`
    const password = secret(unique('a horse'))
    return { ...await kit.app.identity.users.create({ data: { account, password } }), account, password }
  }
  const [own, foreign] = [await harness.register(), await harness.register({ first_party: false, name: 'Foreign' })]
  for (const { client_secret } of [own, foreign]) secret(client_secret)
  const scene: Scene = {
    ...harness,
    ...(createBrowser !== undefined && { browser: () => createBrowser(harness.url) }),
    own,
    foreign,
    add,
    secret,
    async arrive (path = '/account') {
      const [person, tab] = [await add(), scene.browser()]
      const page = await enter(harness, path, tab, person)
      for (const text of [readXsrf(page), ...tab.cookies()]) secret(text)
      return { person, page, tab }
    },
    async mailed (to) {
      const { token = '', link = '' } = await kit.mails.next({ to })
      return { token: secret(token), link }
    }
  }
  return { scene, routes, requests, secrets }
}
