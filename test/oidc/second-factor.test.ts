import * as openid from 'openid-client'
import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import { en } from '../../lib/pages/texts/en.ts'
import { dropLink } from '../../lib/pages/texts/template.ts'
import { passCodeUsed } from '../pages/factors.ts'
import type { Browser, Page } from './browser.ts'
import { type Harness, askCode, eachStore, signIn } from './harness.ts'

const HOUR = 60 * 60_000
const STEP = 30_000
const TITLE = en.secondStep.title.totp
const WRONG = '000000'

const readTitle = ({ title, left }: Page): string => left === undefined ? title.replace(/^.*?: /, '') : 'signed in'

/** What a page says about a refused form. */
const readError = ({ text }: Page): string | undefined => /role="alert"[^>]*>(?:<[^>]+>)*([^<]+)/.exec(text)?.[1]

/** Follows the link to the form for a recovery code. */
async function chooseRecovery ({ browser, text }: Page): Promise<Page> {
  const link = /<a href="([^"]*way=recovery)"/.exec(text)?.[1] ?? ''
  return await browser.open(link.replaceAll('&amp;', '&'))
}

/** A service whose user has an authenticator app. */
async function enrol (start: (options?: object) => Promise<Harness>, options?: object) {
  const harness = await start(options)
  const { kit, user, browser } = harness
  const app = await harness.register()
  const totp = await kit.totp(user.account)
  const users = kit.app.identity.store.collection<UserRecord>('users')
  /** The page of the second step, after the right password. */
  const begin = async (tab: Browser = browser(), params: Record<string, string> = {}) => await signIn(harness, askCode(app, { acr_values: '1', ...params }).url, tab)
  /** The form with a code that was not used yet. */
  const next = async () => {
    kit.clock.advance(STEP)
    return { code: await totp.code() }
  }
  return { ...harness, app, totp, users, begin, next }
}

eachStore(t, 'the second step', async (t, start) => {
  const { kit, user, users, app, url, totp, begin, next, browser, post } = await enrol(start)
  const failures = async () => {
    const counts = (await Array.fromAsync(kit.app.identity.store.collection<{ id: string, failures: number }>('attempts').stream())).flat()
    return counts.map(({ failures }) => failures).sort()
  }

  await t.test('five wrong codes lead back to the password', async (t) => {
    let page = await begin()
    t.equal(readTitle(page), TITLE)
    for (let count = 0; count < 4; count++) {
      page = await page.submit({ code: WRONG })
      t.match([page.response.status, readTitle(page), readError(page)], [400, TITLE, en.errors.wrongCode])
    }
    page = await page.submit({ code: WRONG })
    t.match([page.response.status, readTitle(page), readError(page)], [400, 'Sign in', en.errors.tooManyCodes])
    page = await page.submit({ account: user.account, password: 'wrong', ...await next() })
    t.equal(readTitle(page), 'Sign in', 'a right code is too late')
    page = await page.submit({ account: user.account, password: user.password })
    t.equal(readTitle(await page.submit(await next())), 'signed in')
    t.strictSame(await failures(), [], 'a success ends both counts')
  })

  await t.test('an attacker who knows the password: it ends no count, neither of passwords nor of codes', async (t) => {
    const page = await browser().open(askCode(app).url)
    for (let count = 0; count < 3; count++) await page.submit({ account: user.account, password: 'wrong' })
    for (let round = 1; round <= 3; round++) {
      const second = await page.submit({ account: user.account, password: user.password })
      t.equal(readTitle(second), TITLE)
      await second.submit({ code: WRONG })
      await second.submit({ cancel: 'yes' })
      t.strictSame(await failures(), [round, 3].sort())
      const { url } = askCode(app)
      Object.assign(page, await page.browser.open(url))
    }
    t.equal(readTitle(await (await begin()).submit(await next())), 'signed in')
    t.strictSame(await failures(), [], 'the whole sign-in ends both')
  })

  await t.test('a code is good once, in whichever browser', async (t) => {
    const [one, two] = [await begin(), await begin()]
    const form = await next()
    t.equal(readTitle(await one.submit(form)), 'signed in')
    t.equal(readError(await two.submit(form)), en.errors.wrongCode)
    t.equal(readTitle(await two.submit({ ...await next() })), 'signed in')
  })

  await t.test('a recovery code instead, which is chosen on the page', async (t) => {
    const recovery = await chooseRecovery(await begin())
    t.equal(readTitle(recovery), en.secondStep.title.recovery)
    t.equal(readError(await recovery.submit({ code: totp.recoveryCodes[0]!.slice(1) })), en.errors.wrongCode)
    t.equal(readTitle(await passCodeUsed(await recovery.submit({ code: totp.recoveryCodes[0]! }))), 'signed in')
    t.equal(readError(await (await chooseRecovery(await begin())).submit({ code: totp.recoveryCodes[0]! })), en.errors.wrongCode, 'once')
    t.match(await kit.events.list({ type: 'recovery.used' }), [{ target: { id: user.user_id }, count: 9 }])
  })

  await t.test('what changes between the steps ends the sign-in', async (t) => {
    for (const [set, unset, increment] of [
      [{ disabled_at: '2020-01-01T00:00:00.000Z' }, ['disabled_at']],
      [{ expired_at: '2020-01-01T00:00:00.000Z' }, ['expired_at']],
      [{ name: 'A new password' }, [], { epoch: 1 }]
    ] as const) {
      const page = await begin()
      t.equal(readTitle(page), TITLE)
      await users.update(user.user_id, { set, increment: { revision: 1, ...increment } })
      const refused = await page.submit(await next())
      t.equal(readTitle(refused), 'Sign in', Object.keys(set).join())
      t.equal(refused.left, undefined)
      await users.update(user.user_id, { unset: [...unset], increment: { revision: 1 } })
    }
  })

  await t.test('a link for a new password asks for the second factor', async (t) => {
    const { accounts } = kit.app.identity
    const page = await browser().open(askCode(app).url)
    // The notices of the codes that were used before.
    await kit.mails.all()
    await accounts.forgotPassword(user.account, { ip: '127.0.0.1' })
    const { link } = await kit.mails.next({ to: user.account })
    const set = await (await page.browser.open(link!)).submit({ password: 'another horse' })
    t.equal(set.left, undefined, 'the link alone signs nobody in')
    const second = await set.browser.open('/account')
    t.equal(readTitle(second), TITLE, 'the new password is not asked for')
    t.match((await second.submit(await next())).text, user.account)
    user.password = 'another horse'
  })

  await t.test('openid-client asks for mfa and gets it, fresh with max_age=0', async (t) => {
    const config = await openid.discovery(new URL(url), app.client_id, app.client_secret, undefined, { execute: [openid.allowInsecureRequests] })
    const tab = browser()
    await (await begin(tab)).submit(await next())
    const pkceCodeVerifier = openid.randomPKCECodeVerifier()
    const asked = { redirect_uri: app.redirect_uri, scope: 'openid', acr_values: 'mfa', max_age: '0', code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier), code_challenge_method: 'S256' }
    const page = await tab.open(openid.buildAuthorizationUrl(config, asked).href)
    t.equal(page.title, 'Sign in', 'both are asked for again')
    const { left } = await (await page.submit({ account: user.account, password: user.password })).submit(await next())
    const tokens = await openid.authorizationCodeGrant(config, left as URL, { pkceCodeVerifier, maxAge: 60, idTokenExpected: true })
    t.match(tokens.claims(), { acr: 'mfa', amr: ['pwd', 'otp', 'mfa'] })
    const { body } = await post('introspect', { token: tokens.access_token }, app)
    t.match(body, { active: true, acr: 'mfa', amr: ['pwd', 'otp', 'mfa'] })
  })
})

/** Submits this wrong code until it is not compared any more. @returns how often it was compared, and the error after that */
async function lock ({ kit, begin }: Pick<Awaited<ReturnType<typeof enrol>>, 'kit' | 'begin'>, code: string, choose: (page: Page) => Promise<Page>) {
  let [compared, closed] = [0, '']
  while (closed === '' && compared < 200) {
    let page = await choose(await begin())
    for (let count = 0; count < 5; count++) {
      page = await page.submit({ code })
      const { status, headers } = page.response
      if (status === 400) {
        compared++
        continue
      }
      if (headers.has('retry-after')) kit.clock.advance(1000 * Number(headers.get('retry-after')))
      else closed = readError(page) ?? ''
      // A sign-in does not wait as long as the longest pause.
      break
    }
  }
  return { compared, closed }
}

eachStore(t, '100 wrong codes lock the app', async (t, start) => {
  const enrolled = await enrol(start)
  const { kit, user, begin, next, totp } = enrolled
  const { compared, closed } = await lock(enrolled, WRONG, async (page) => page)
  t.equal(compared, 100)
  t.equal(closed, dropLink(en.errors.codeClosed), 'not the advice for a password')
  t.match((await kit.events.list({ user: user.user_id })).filter(({ type }) => type === 'factor.closed').length, 1)
  kit.clock.advance(48 * HOUR)
  const page = await begin()
  t.equal(readError(await page.submit(await next())), dropLink(en.errors.codeClosed), 'the right code is not compared')
  t.equal(readTitle(await passCodeUsed(await (await chooseRecovery(page)).submit({ code: totp.recoveryCodes[0]! }))), 'signed in')
  t.equal(readTitle(await (await begin()).submit(await next())), 'signed in', 'a recovery code opens it')
  t.match((await kit.events.list({ type: 'factor.opened' })).length, 1)
})

eachStore(t, '100 wrong backup codes lock them, over sign-ins and sets, and a code of the app unlocks them', async (t, start) => {
  const enrolled = await enrol(start)
  const { kit, user, begin, next, totp } = enrolled
  const { compared, closed } = await lock(enrolled, 'nota-bene-c0de', chooseRecovery)
  t.equal(compared, 100)
  t.equal(closed, dropLink(en.errors.codeClosed))
  t.match((await kit.events.list({ user: user.user_id, type: 'factor.closed' })).at(-1), { method: { kind: 'recovery' } })
  kit.clock.advance(48 * HOUR)
  t.equal(readError(await (await chooseRecovery(await begin())).submit({ code: totp.recoveryCodes[0]! })), dropLink(en.errors.codeClosed), 'the right code is not compared')
  t.equal(readTitle(await (await begin()).submit(await next())), 'signed in')
  const typed = totp.recoveryCodes[0]!.toUpperCase().replaceAll('-', ' ')
  t.equal(readTitle(await passCodeUsed(await (await chooseRecovery(await begin())).submit({ code: typed }))), 'signed in', 'in any case and spacing')
})
