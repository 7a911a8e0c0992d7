import t, { type Test } from 'tap'
import { TOTP } from 'otpauth'
import { createLook } from '../../lib/pages/look.ts'
import { getTexts } from '../../lib/pages/texts/index.ts'
import type { Texts } from '../../lib/pages/texts/en.ts'
import { type Harness, askCode } from '../oidc/harness.ts'
import { addUser } from './visits.ts'
import { skip, startChromium } from './chromium.ts'
import { APP, type Manner, type Person, addAuthenticator, open, walk } from './walks.ts'

t.setTimeout(600_000)

const WIDE = { width: 1280, height: 800 }
const ENGLISH: Manner = { name: 'with scripts, in English', locale: 'en-GB', colorScheme: 'light', viewport: WIDE, hasScript: true }
const GERMAN: Manner = { ...ENGLISH, name: 'with scripts, in German', locale: 'de-AT' }
// Pictures need both languages and no more.
const MANNERS: readonly Manner[] = process.env.SCREENSHOTS
  ? [ENGLISH, GERMAN]
  : [
      ENGLISH,
      { name: 'without scripts, in German, on a phone in the dark', locale: 'de-AT', colorScheme: 'dark', viewport: { width: 360, height: 740 }, hasScript: false },
      { ...ENGLISH, name: 'by keyboard', isByKeyboard: true }
    ]

const PERIOD = 30_000
const NEW = 'a long and new password'
const RESOURCE = { id: 'https://notes.example/mcp', name: 'Notes', scopes: { 'notes:read': 'read your notes', 'notes:write': 'change your notes' }, documents: ['notes:read'] }

interface Scene extends Harness { words: Texts, manner: Manner }

/** The text without the tags. */
const plain = (text: unknown): string => String(text).replaceAll(/<[^>]*>/g, '').replaceAll('&#39;', "'")

type Walk = (person: Person, scene: Scene) => Promise<void>

async function signIn (person: Person, { common, signIn: own }: Texts, { account, password }: { account: string, password: string }): Promise<void> {
  await person.fill(common.account, account)
  await person.fill(common.password, password)
  await person.press(own.submit)
}

/** The next code of an authenticator app. */
function nextCode ({ kit }: Harness, secret: string): string {
  kit.clock.advance(PERIOD)
  return new TOTP({ secret }).generate({ timestamp: kit.clock.now() })
}

const readLink = async ({ kit }: Harness, to: string): Promise<string> => {
  const { link = '' } = await kit.mails.next({ to })
  return link
}

/** Adds an authenticator app from the list of the methods. Resolves to its seed, and the backup codes if it is the first method. */
async function addApp (person: Person, scene: Scene, isFirst: boolean): Promise<{ secret: string, codes: string[] }> {
  const { words: { account: own, common }, user } = scene
  await person.follow(own.addApp)
  await person.look(own.addApp)
  await person.fill(own.appName, 'Phone')
  await person.fill(own.currentPassword, user.password)
  await person.press(common.continue)
  await person.look(own.addApp)
  const secret = (await person.tab.locator('#seed').textContent())?.replaceAll(' ', '') ?? ''
  await person.fill(own.firstCode, nextCode(scene, secret))
  await person.press(common.continue)
  if (!isFirst) return { secret, codes: [] }
  await person.look(own.codes)
  const codes = await person.tab.locator('#codes code').allTextContents()
  await person.check(own.kept)
  await person.press(own.turnOn)
  return { secret, codes }
}

/** The ten walks of people. */
const WALKS: Record<string, { needsScript?: boolean, options?: Parameters<typeof open>[1], run: Walk }> = {
  'sign-up': {
    async run (person, scene) {
      const { words: { signIn: entry, links, consent }, url, register } = scene
      const app = await register({ first_party: false, redirectUris: [APP] })
      await person.tab.goto(url + askCode(app).url)
      await person.look(entry.title)
      await person.follow(entry.signUp)
      await person.look(links.signUp.title)
      await person.fill(links.signUp.field, 'nora@example.com')
      await person.press(links.signUp.submit)
      await person.look(links.sent.title)
      await person.tab.goto(await readLink(scene, 'nora@example.com'))
      await person.look(links.setPassword['sign-up'].title)
      await person.fill(links.setPassword.field, NEW)
      await person.press(links.setPassword['sign-up'].submit)
      await person.look(plain(consent.heading({ app: 'The App' })))
      await person.press(consent.allow)
      await person.arrive()
    }
  },

  'sign-in': {
    needsScript: true,
    async run (person, scene) {
      const { words, kit, url, user } = scene
      const { signIn: entry, account: own, common, passkey, secondStep, upstreams } = words
      await addAuthenticator(person.tab)
      await person.tab.goto(`${url}/account`)
      await person.look(entry.title)
      await signIn(person, words, { ...user, password: 'wrong' })
      await person.look(entry.title)
      person.tab.complaints.length = 0
      await signIn(person, words, user)
      await person.look(own.sections.profile)
      await person.goTo(own.sections.methods)
      await person.look(own.sections.methods)
      await person.follow(own.addPasskey)
      await person.look(own.addPasskey)
      await person.fill(own.passkeyName, 'Laptop')
      await person.fill(own.currentPassword, user.password)
      await person.press(common.continue)
      await person.look(own.addPasskey)
      await person.press(passkey.create)
      await person.tab.getByLabel(own.kept).waitFor()
      await person.look(own.codes)
      await person.check(own.kept)
      await person.press(own.turnOn)
      await person.signOut(words)
      await person.tab.goto(`${url}/account`)
      await person.press(passkey.signIn)
      await person.tab.waitForURL(`${url}/account`)
      await person.signOut(words)
      await person.tab.goto(`${url}/account`)
      await signIn(person, words, user)
      await person.look(secondStep.title.passkey)
      await person.press(passkey.use)
      await person.tab.waitForURL(`${url}/account`)
      await person.signOut(words)
      kit.upstream({ sub: 'tom', email: 'tom@example.com', email_verified: true })
      await person.tab.goto(`${url}/account`)
      await person.follow(plain(upstreams.with({ name: 'Contoso' })))
      await person.look(upstreams.choose.title)
      await person.press(upstreams.choose.submit)
      await person.look(own.sections.profile)
    }
  },

  'forgotten-password': {
    async run (person, scene) {
      const { words: { signIn: entry, links, common, account: own, errors }, url, user } = scene
      await person.tab.goto(`${url}/account`)
      await person.follow(entry.forgot)
      await person.look(links.forgot.title)
      await person.fill(links.forgot.field, user.account)
      await person.press(links.forgot.submit)
      await person.look(links.sent.title)
      const link = await readLink(scene, user.account)
      await person.tab.goto(link)
      await person.look(links.setPassword.reset.title)
      await person.fill(links.setPassword.field, NEW)
      await person.press(links.setPassword.reset.submit)
      await person.look(links.done.password.title)
      await person.follow(common.toAccount)
      await person.look(own.sections.profile)
      await person.tab.goto(link)
      person.tab.complaints.length = 0
      await person.look(errors.heading)
    }
  },

  'two-step-set-up': {
    async run (person, scene) {
      const { words, url, user } = scene
      const { account: own, secondStep, common } = words
      await person.tab.goto(`${url}/account`)
      await signIn(person, words, user)
      await person.goTo(own.sections.methods)
      const { secret } = await addApp(person, scene, true)
      await person.look(own.sections.methods)
      await person.signOut(words)
      await person.look(words.signOut.doneTitle)
      await person.tab.goto(`${url}/account`)
      await signIn(person, words, user)
      await person.look(secondStep.title.totp)
      await person.fill(secondStep.label.totp, '000000')
      await person.press(common.continue)
      await person.look(secondStep.title.totp)
      person.tab.complaints.length = 0
      await person.fill(secondStep.label.totp, nextCode(scene, secret))
      await person.press(common.continue)
      await person.look(own.sections.profile)
    }
  },

  'lost-phone': {
    async run (person, scene) {
      const { words, kit, url, user } = scene
      const { account: own, secondStep, common, codeUsed } = words
      const totp = await kit.totp(user.account)
      await kit.mails.all()
      await person.tab.goto(`${url}/account`)
      await signIn(person, words, user)
      await person.follow(secondStep.other.recovery)
      await person.look(secondStep.title.recovery)
      await person.fill(secondStep.label.recovery, totp.recoveryCodes[0] ?? '')
      await person.press(common.continue)
      await person.look(codeUsed.title)
      await person.follow(codeUsed.replace)
      await person.look(own.sections.methods)
      await person.follow(new RegExp(`^${own.manage}`))
      await person.look(own.authenticator)
      await person.follow(own.removeLink)
      await person.look(plain(own.removeQuestion({ what: own.authenticator })))
      await person.fill(own.currentPassword, user.password)
      await person.fill(own.code, totp.recoveryCodes[1] ?? '')
      await person.press(own.remove)
      await person.look(own.sections.methods)
      await addApp(person, scene, true)
      await person.look(own.sections.methods)
    }
  },

  'new-phone': {
    async run (person, scene) {
      const { words, kit, url, user } = scene
      const { account: own, secondStep, common } = words
      const totp = await kit.totp(user.account)
      await person.tab.goto(`${url}/account`)
      await signIn(person, words, user)
      kit.clock.advance(PERIOD)
      await person.fill(secondStep.label.totp, await totp.code())
      await person.press(common.continue)
      await person.goTo(own.sections.methods)
      await person.follow(own.addAnotherApp)
      await person.fill(own.appName, 'New phone')
      await person.fill(own.currentPassword, user.password)
      kit.clock.advance(PERIOD)
      await person.fill(own.code, await totp.code())
      await person.press(common.continue)
      await person.look(own.addApp)
      const secret = (await person.tab.locator('#seed').textContent())?.replaceAll(' ', '') ?? ''
      await person.fill(own.firstCode, nextCode(scene, secret))
      await person.press(common.continue)
      await person.look(own.sections.methods)
      await person.follow(new RegExp(`^${own.manage}.*${own.authenticator}`))
      await person.follow(own.removeLink)
      await person.fill(own.currentPassword, user.password)
      await person.fill(own.code, nextCode(scene, secret))
      await person.press(own.remove)
      await person.look(own.sections.methods)
    }
  },

  invitation: {
    async run (person, scene) {
      const { words: { links, account: own, common }, kit, user } = scene
      await kit.app.identity.accounts.inviteUser({ account: 'ida@example.com' }, { user_id: user.user_id, isAdmin: true })
      await person.tab.goto(await readLink(scene, 'ida@example.com'))
      await person.look(links.setPassword.invite.title)
      await person.fill(links.setPassword.field, NEW)
      await person.press(links.setPassword.invite.submit)
      await person.look(links.done.account.title)
      await person.follow(common.toAccount)
      await person.look(own.sections.profile)
    }
  },

  'provider-only': {
    options: { upstream: { name: 'Contoso', domains: ['contoso.example'], only: true, create: true } },
    async run (person, scene) {
      const { words, kit, url, register } = scene
      const { signIn: entry, upstreams, consent } = words
      const app = await register({ first_party: false, redirectUris: [APP] })
      kit.upstream({ sub: 'yara', email: 'yara@contoso.example', email_verified: true, name: 'Yara' })
      await person.tab.goto(url + askCode(app).url)
      await signIn(person, words, { account: 'yara@contoso.example', password: 'whatever it is' })
      await person.look(entry.title)
      await person.follow(plain(upstreams.with({ name: 'Contoso' })))
      await person.look(upstreams.choose.title)
      await person.press(upstreams.choose.submit)
      await person.look(plain(consent.heading({ app: 'The App' })))
      await person.press(consent.allow)
      await person.arrive()
    }
  },

  device: {
    async run (person, scene) {
      const { words, url, user, register, post } = scene
      const { signIn: entry, device, consent, common } = words
      const app = await register({ public: true, first_party: false, name: 'Television' })
      const { body } = await post('device_authorization', { scope: 'openid profile' }, app)
      await person.tab.goto(String(body.verification_uri))
      await person.look(device.title)
      await person.fill(device.code, String(body.user_code))
      await person.press(common.continue)
      await person.look(entry.title)
      await signIn(person, words, user)
      await person.look(plain(consent.heading({ app: 'Television' })))
      await person.press(consent.allow)
      await person.look(device.doneTitle)
      const other = await post('device_authorization', { scope: 'openid profile' }, app)
      await person.tab.goto(`${url}/api/v1/auth/device?${new URLSearchParams({ user_code: String(other.body.user_code) })}`)
      await person.look(device.compareHeading)
      await person.press(device.compareSame)
      await person.look(plain(consent.heading({ app: 'Television' })))
      await person.press(consent.deny)
      await person.look(device.title)
      person.tab.complaints.length = 0
    }
  },

  agent: {
    options: { resources: [RESOURCE], oidc: { documents: { hosts: [{ host: 'agent.example', redirects: ['app.example'] }] } } },
    async run (person, scene) {
      const { words, kit, url, user } = scene
      const { signIn: entry, consent } = words
      const agent = kit.agent({ client_name: 'Notes reader', redirect_uris: [APP] })
      const asked = askCode({ client_id: agent.clientId, client_secret: '', redirect_uri: APP }, { scope: 'openid offline_access notes:read', resource: RESOURCE.id })
      await person.tab.goto(url + asked.url)
      await person.look(entry.title)
      await signIn(person, words, user)
      await person.look(plain(consent.heading({ app: 'agent.example' })))
      await person.press(consent.allow)
      await person.arrive()
    }
  }
}

async function runWalk (t: Test, name: string, manner: Manner): Promise<void> {
  const { options, run } = WALKS[name]!
  const harness = await open(t, options)
  await addUser(harness, 'bob@example.com')
  await walk(t, name, manner, async (person) => await run(person, { ...harness, manner, words: getTexts(createLook(), manner.locale.slice(0, 2)) }))
}

t.test('people go through the pages', { skip }, async (t) => {
  startChromium(t)
  for (const manner of MANNERS) {
    for (const [name, { needsScript = false }] of Object.entries(WALKS)) {
      if (needsScript && !manner.hasScript) continue
      await t.test(`${name}, ${manner.name}`, async (t) => await runWalk(t, name, manner))
    }
  }
})
