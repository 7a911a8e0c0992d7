import { deepStrictEqual, ok } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { en } from '../../lib/pages/texts/en.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { AttemptsRecord } from '../../lib/throttling/attempts.ts'
import { toWayKey } from '../../lib/way.ts'
import type { SignInAnswer } from '../../schemas/answers.ts'
import type { Reason } from '../../schemas/reason.ts'
import type { StartOptions, TestPasskey, TestTotp } from '../../testing/index.ts'
import type { Page } from '../oidc/browser.ts'
import { type App, type Harness, askCode, atLocalhost, eachStore } from '../oidc/harness.ts'
import { asksPasskey } from '../pages/passkeys.ts'
import { enrolInSignIn, readHidden } from '../pages/factors.ts'
import { signIn as signInAs, unique } from '../helpers/people.ts'
import { checkProperty } from '../helpers/property.ts'
import { through } from '../upstreams/through.ts'

// Each state is a new person, who tries to sign in over HTTP.
t.setTimeout(900_000)

const OPERATOR = { user_id: 'operator', isAdmin: true }

/** Failures that lock a password or an authenticator app. */
const MOST = 100
/** Failures after which the next attempt has to wait. */
const MANY = 30
const STEP = 30_000

const PASSWORD = 'correct horse'
/** The one upstream of the kit. */
const UPSTREAM = 'test'

/** What the operator may demand and allow. 28 states each make 308 on SQLite, and 10 each make 110 on MongoDB, which takes longer. */
const SETTINGS: Record<string, StartOptions> = {
  'as it is': {},
  'without passkeys': { passkeys: false },
  'factors off': { factors: 'off' },
  'factors required': { factors: 'required' },
  'required without passkeys': { factors: 'required', passkeys: false },
  'of a role': { factors: { roles: ['ops'] } },
  'of a role, without passkeys': { factors: { roles: ['ops'] }, passkeys: false },
  'with a former system': { migrate: { verify: (_account, password) => password === PASSWORD } },
  'with another provider': { upstream: {} },
  'by another provider alone': { upstream: { domains: ['example.com'], only: true, emails: 'verified' } },
  'with a provider of another app': { upstream: { clients: ['portal'] } }
}
const RUNS = { sqlite: 28, mongodb: 10 }

/** A person as the test makes them, and what they sign in to. */
const states = fc.record({
  hasPassword: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
  isFormer: fc.oneof({ weight: 1, arbitrary: fc.constant(true) }, { weight: 2, arbitrary: fc.constant(false) }),
  hasIdentity: fc.boolean(),
  passkey: fc.constantFrom(undefined, 'verifies', 'does not verify'),
  hasApp: fc.boolean(),
  isReset: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  isOps: fc.boolean(),
  standing: fc.oneof({ weight: 4, arbitrary: fc.constant('active') }, { weight: 1, arbitrary: fc.constantFrom('disabled', 'expired') }),
  failures: fc.oneof({ weight: 3, arbitrary: fc.constant('none') }, { weight: 2, arbitrary: fc.constantFrom('paused', 'locked', 'app locked') }),
  usedCodes: fc.boolean(),
  client: fc.oneof({ weight: 4, arbitrary: fc.constant('usable') }, { weight: 1, arbitrary: fc.constantFrom('disabled', 'stopped') }),
  acr: fc.constantFrom(undefined, 'mfa', 'phr')
})

type State = typeof states extends fc.Arbitrary<infer T> ? T : never

/** How a sign-in ended: in the app, at the page that adds a factor, or nowhere. */
type End = 'in' | 'adds' | 'refused'

interface Person {
  harness: Harness
  app: App
  acr: string | undefined
  user_id: string
  account: string
  hasIdentity?: true
  key?: TestPasskey
  totp?: TestTotp
  codes: string[]
}

const isTitle = ({ title }: Page, wanted: string): boolean => title.endsWith(wanted)

/**
 * The end of a page that asks for nothing more of what the test can prove. An authenticator app is added at once. For `phr` a passkey has to be
 * offered.
 */
async function readEnd (page: Page, { acr, harness: { kit } }: Person): Promise<End | undefined> {
  const { left } = page
  if (left !== undefined) return left.searchParams.has('code') ? 'in' : 'refused'
  if (!isTitle(page, en.enrol.title)) return undefined
  if (acr === 'phr') return page.text.includes('way=passkey') ? 'adds' : 'refused'
  const added = await enrolInSignIn(kit.clock, page)
  return added.page.left?.searchParams.has('code') === true ? 'adds' : 'refused'
}

async function choose (page: Page, way: string): Promise<Page> {
  const link = new RegExp(`<a href="([^"]*way=${way})"`).exec(page.text)?.[1]
  return link === undefined ? page : await page.browser.open(link.replaceAll('&amp;', '&'))
}

/** Sends a passkey as the script of the page does. */
async function sendPasskey (page: Page, key: TestPasskey): Promise<Page> {
  const body = new URLSearchParams({ xsrf: readHidden(page, 'xsrf'), way: 'passkey', form_id: readHidden(page, 'form_id'), assertion: key.answer(page.text) })
  const action = / action="([^"]*)"/.exec(page.text)?.[1]?.replaceAll('&amp;', '&') ?? page.response.url
  return await page.browser.open(action, { method: 'POST', headers: { origin: page.browser.origin }, body })
}

/** Signs in with the other provider, where the page offers it. */
async function enterByUpstream (page: Page, { harness: { kit }, user_id, account }: Person): Promise<Page> {
  if (!/<a class="button" href="[^"]*upstream/.test(page.text)) return page
  kit.upstream({ sub: user_id, email: account, email_verified: true })
  return await through(page.browser, page)
}

/** Proves a second method on the page that asks for one. */
async function proveSecond (page: Page, { harness: { kit }, key, totp, codes }: Person, second: string): Promise<Page> {
  const chosen = isTitle(page, en.secondStep.title[second as 'totp']) ? page : await choose(page, second)
  if (!isTitle(chosen, en.secondStep.title[second as 'totp'])) return page
  if (second === 'passkey') return key !== undefined && asksPasskey(chosen) ? await sendPasskey(chosen, key) : page
  if (second === 'recovery') return codes.length > 0 ? await chosen.submit({ code: codes.shift()! }) : page
  kit.clock.advance(STEP)
  return totp === undefined ? page : await chosen.submit({ code: await totp.code() })
}

/** Tries to sign in over HTTP, with one method first and perhaps one after it. */
async function tryOnce (person: Person, first: string, second: string | undefined): Promise<End> {
  const { harness, app, acr, account, key } = person
  const page = await harness.browser().open(askCode(app, { acr_values: acr, scope: 'openid' }).url)
  if (!isTitle(page, en.signIn.title)) return await readEnd(page, person) ?? 'refused'
  if (first === 'passkey' && (key === undefined || !asksPasskey(page))) return 'refused'
  const next = first === 'passkey'
    ? await sendPasskey(page, key!)
    : first === 'upstream' ? await enterByUpstream(page, person) : await page.submit({ account, password: PASSWORD })
  const end = await readEnd(next, person)
  if (end !== undefined || second === undefined) return end ?? 'refused'
  return await readEnd(await proveSecond(next, person, second), person) ?? 'refused'
}

/** The best end of all sign-ins that the person can try. */
async function signIn (person: Person): Promise<End> {
  const { key, totp, codes, hasIdentity } = person
  const held = [...(key === undefined ? [] : ['passkey']), ...(totp === undefined ? [] : ['totp']), ...(codes.length === 0 ? [] : ['recovery'])]
  for (const first of ['password', ...(key === undefined ? [] : ['passkey']), ...(hasIdentity === true ? ['upstream'] : [])]) {
    for (const second of held.length === 0 ? [undefined] : held) {
      const end = await tryOnce(person, first, second)
      if (end !== 'refused') return end
    }
  }
  return 'refused'
}

/** Fails once, and makes the count of it one of many failures. Each of them would take as long as a sign-in. */
async function failOften ({ kit }: Harness, failures: number, attempt: () => Promise<unknown>): Promise<void> {
  const counts = kit.app.identity.store.collection<AttemptsRecord>('attempts')
  const list = async (): Promise<AttemptsRecord[]> => (await Array.fromAsync(counts.stream())).flat()
  const known = new Set((await list()).map(({ id }) => id))
  await attempt()
  const [begun] = (await list()).filter(({ id }) => !known.has(id))
  await counts.update(begun?.id ?? '', { set: { failures } })
}

/** A service, with the settings that decide what people can have. */
interface Place extends Harness {
  factors: StartOptions['factors']
  /** The issuer of the other provider. */
  issuer: string | undefined
}

async function createPerson (harness: Place, apps: Record<string, App>, state: State): Promise<Person> {
  const { kit } = harness
  const { users, ways, factors, heldFactors, store } = kit.app.identity
  const records = store.collection<UserRecord>('users')
  const account = `${unique('ann')}@example.com`
  const { user_id } = await users.create({ data: { account, password: PASSWORD } })
  const app = apps[state.client]!
  const isOn = harness.factors !== 'off'
  const person: Person = { harness, app, acr: state.acr, user_id, account, codes: [] }
  if (isOn && state.passkey !== undefined && kit.app.identity.passkeys.party !== undefined) {
    person.key = await kit.passkey(user_id, { uv: state.passkey === 'verifies' })
    person.codes.push(...person.key.recoveryCodes)
  }
  if (isOn && state.hasApp) {
    person.totp = await kit.totp(user_id)
    person.codes.push(...person.totp.recoveryCodes)
  }
  if (harness.issuer !== undefined && state.hasIdentity) {
    const { issuer } = harness
    await ways.add({ user_id, epoch: null }, { kind: 'upstream', upstream: UPSTREAM, issuer, key: toWayKey('upstream', issuer, user_id), material: { issuer, subject: user_id } })
    person.hasIdentity = true
  }
  if (state.isOps) await users.patch(user_id, { data: { roles: { ops: true } } }, OPERATOR)
  if (state.isReset) {
    await heldFactors.reset(user_id, OPERATOR)
    delete person.key
    delete person.totp
    person.codes = []
  }
  if (state.usedCodes) for (const code of person.codes.splice(0)) await factors.verifyCode(user_id, code)
  if (state.failures === 'paused') await failOften(harness, MANY, async () => await users.signIn(account, 'wrong'))
  if (state.failures === 'locked') await failOften(harness, MOST, async () => await users.signIn(account, 'wrong'))
  if (state.failures === 'app locked' && person.totp !== undefined) await failOften(harness, MOST, async () => await factors.verifyTotp(user_id, '000000'))
  if (!state.hasPassword) await records.update(user_id, { unset: ['password'], ...(state.isFormer && { set: { imported_lazy: true } }), increment: { revision: 1 } })
  if (state.standing === 'disabled') await users.patch(user_id, { disable: true }, OPERATOR)
  if (state.standing === 'expired') await records.update(user_id, { set: { expired_at: '2020-01-01T00:00:00.000Z' }, increment: { revision: 1 } })
  return person
}

/** Does over HTTP what opens a reason. False for what the person themselves must do after it. */
async function applyRemedy ({ harness: { kit }, user_id, app }: Person, reason: Reason): Promise<boolean> {
  const admin = await signInAs(kit, { user: 'operator', roles: ['admin'] })
  const verified_at = new Date(kit.clock.now()).toISOString()
  const acts: Partial<Record<Reason, () => Promise<{ status: number }>>> = {
    disabled: async () => await admin.patch(`/user/${user_id}`, { disable: false }),
    expired: async () => await admin.patch(`/user/${user_id}`, { data: { verified_at } }),
    unproved_address: async () => await admin.patch(`/user/${user_id}`, { data: { email_verified: true } }),
    client_disabled: async () => await admin.patch(`/client/${app.client_id}`, { data: { disabled: false } }),
    password_locked: async () => await admin.post(`/user/${user_id}/unlock`),
    paused: async () => await admin.post(`/user/${user_id}/unlock`),
    factor_locked: async () => await admin.post(`/user/${user_id}/unlock`)
  }
  const answer = await acts[reason]?.()
  if (answer !== undefined) ok(answer.status < 300, `${reason}: ${answer.status}`)
  return answer !== undefined
}

/** Three apps: a usable one, a disabled one, and one with a disabled owner. */
async function createApps (harness: Harness): Promise<Record<'usable' | 'disabled' | 'stopped', App>> {
  const { users, clients } = harness.kit.app.identity
  const [usable, disabled] = [await harness.register(), await harness.register()]
  await clients.disable(disabled.client_id)
  const owner = await users.create({ data: { account: unique('owner'), password: 'p' } })
  const { clientId } = await clients.create({ data: { redirectUris: ['https://app.example/cb'], scopes: [], name: 'Of nobody' }, credentials: true }, { ...owner, isAdmin: false })
  await users.patch(owner.user_id, { disable: true }, OPERATOR)
  return { usable, disabled, stopped: { client_id: clientId, client_secret: '', redirect_uri: 'https://app.example/cb' } }
}

for (const [name, options] of Object.entries(SETTINGS)) {
  eachStore(t, `what the answer says of a random person is how their sign-in ends: ${name}`, async (t, start, store) => {
    const started = await start({ ...await atLocalhost(), ...options })
    const harness = { ...started, factors: options.factors, issuer: options.upstream && started.kit.upstream.issuer }
    const apps = await createApps(harness)

    async function ask ({ user_id, app, acr }: Person): Promise<SignInAnswer> {
      const query = new URLSearchParams({ client_id: app.client_id, ...(acr !== undefined && { acr }) })
      // The clock goes on, so each question has a token of its own.
      const { headers } = await harness.kit.mint({ user: 'operator', roles: ['admin'] })
      const response = await harness.kit.inject({ url: `/api/v1/user/${user_id}/sign-in?${query}`, headers })
      deepStrictEqual(response.statusCode, 200, response.payload)
      return response.json().data
    }

    const seen = new Set<string>()
    await checkProperty(t, RUNS[store], fc.asyncProperty(states, async (state) => {
      const person = await createPerson(harness, apps, state)
      // Mails about what was done so far.
      await harness.kit.flush()
      const before = await ask(person)
      deepStrictEqual(await ask(person), before, 'asking changes nothing')
      const end = await signIn(person)
      for (const { reason } of before.reasons) seen.add(reason)
      deepStrictEqual(before.allowed, end !== 'refused', `${JSON.stringify(before)} ${end}`)
      deepStrictEqual(before.allowed && before.reasons.some(({ reason, remedy }) => reason === 'factor_missing' && remedy?.who[0] === 'self'), end === 'adds', JSON.stringify(before))
      ok(before.allowed || before.reasons.length > 0, 'a refusal has a reason')
      const opened: Reason[] = []
      for (const { reason, remedy } of before.reasons) if (remedy?.allowed === true && await applyRemedy(person, reason)) opened.push(reason)
      if (opened.length === 0) return
      const after = await ask(person)
      const endAfter = await signIn(person)
      if (opened.includes('client_disabled')) await harness.kit.app.identity.clients.disable(person.app.client_id)
      deepStrictEqual(after.reasons.filter(({ reason }) => opened.includes(reason)), [], 'what its remedy opened is open')
      deepStrictEqual(after.allowed, endAfter !== 'refused', `after ${opened.join(', ')}: ${JSON.stringify(after)} ${endAfter}`)
    }))
    t.comment([...seen].sort().join(' '))
    t.ok(seen.size > (store === 'sqlite' ? 5 : 3))
  })
}
