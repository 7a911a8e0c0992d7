import t from 'tap'
import { en } from '../../lib/pages/texts/en.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { CredentialRecord } from '../../lib/way.ts'
import { eachStore } from '../oidc/harness.ts'
import { enrol, listRemovals, nextCode, pathOf, readCodes, readHidden, readSeed } from './factors.ts'
import { enter, post } from './visits.ts'

const { account: own, errors, secondStep } = en

eachStore(t, 'second factors on the account pages', async (t, start) => {
  const harness = await start()
  const { kit, user, browser } = harness
  const { store } = kit.app.identity
  const users = store.collection<UserRecord>('users')
  const readUser = async () => (await users.get(user.user_id))!
  const countWays = async () => Object.keys((await readUser()).ways ?? {}).length

  await t.test('an app is added only after its first right code, and with the codes only after the person has kept them', async (t) => {
    const page = await enter(harness, '/account/methods')
    t.match(page.text, own.noFactors)
    t.notMatch(page.text, own.newCodes)
    const wrong = await post(page, '/account/factors', { name: 'Phone', current_password: 'wrong' })
    t.equal(wrong.response.status, 400)
    t.match(wrong.text, own.wrongCurrent)
    t.equal(await store.collection('credentials').count(), 0, 'nothing is stored without the proof')

    const begun = await post(page, '/account/factors', { name: '<b>Phone', current_password: user.password })
    t.match(begun.text, '<svg class="qr" role="img"')
    t.match(begun.text, /href="otpauth:\/\/totp\//)
    const seed = readSeed(begun)
    t.match(seed, /^[A-Z2-7]{32}$/)
    t.equal(await countWays(), 0, 'a seed that waits is not named')
    const path = pathOf(begun)
    const refused = await post(begun, path, { code: '000000' })
    t.equal(refused.response.status, 400)
    t.match(refused.text, errors.wrongCode)
    t.equal(readSeed(refused), seed, 'the same seed is shown again')

    const code = await nextCode(kit.clock, seed)
    const shown = await post(begun, path, { code })
    const codes = readCodes(shown)
    t.equal(new Set(codes).size, 10)
    const file = decodeURIComponent(/href="data:text\/plain;charset=utf-8,([^"]*)" download/.exec(shown.text)?.[1] ?? '')
    t.strictSame(file.split('\r\n').slice(1), codes, 'they can be downloaded without a script')
    t.match(file, user.account)
    t.equal(await countWays(), 0, 'neither is named before the person confirms')

    const fields = { codes: readHidden(shown, 'codes'), factor: readHidden(shown, 'factor') }
    t.match((await post(shown, '/account/factors/codes', fields)).text, own.keepFirst)
    t.match((await post(shown, '/account/factors/codes', { ...fields, factor: 'unknown', kept: 'yes' })).text, own.enrolmentOver)
    t.match((await post(shown, '/account/factors/codes', { ...fields, codes: 'unknown', kept: 'yes' })).text, own.enrolmentOver)
    t.match((await post(shown, '/account/factors/codes', { ...fields, codes: fields.factor, kept: 'yes' })).text, own.enrolmentOver, 'a seed is no set of codes')
    t.match((await post(shown, '/account/factors/codes', { codes: fields.codes, kept: 'yes' })).text, own.enrolmentOver, 'codes come with a factor')
    t.equal(await countWays(), 0)

    t.match((await begun.browser.open(path)).text, own.proved, 'whoever has lost the page goes on after the code')
    const again = await post(begun, path)
    t.equal(readCodes(again).length, 10, 'with other codes')
    t.notSame(readCodes(again), codes)

    const done = await post(shown, '/account/factors/codes', { ...fields, kept: 'yes' })
    t.match(done.text, own.done.factor)
    t.match(done.text, '&lt;b&gt;Phone')
    t.match(done.text, '10 codes left.')
    t.equal(await countWays(), 2)
    t.match((await done.browser.open('/account/sessions')).text, own.browsersWhy, 'this browser has proved both')
    t.equal((await done.browser.open(path)).response.status, 200, 'unnamed material is still prepared for its time')
    t.match((await post(done, '/account/factors/codes', { ...fields, kept: 'yes' })).text, own.enrolmentOver, 'it is named once')
  })

  await t.test('the other forms ask for a code too, and a wrong password costs no code', async (t) => {
    const owner = await harness.kit.app.identity.users.create({ data: { account: 'cara@example.com', password: 'a horse too' } })
    const who = { account: 'cara@example.com', password: 'a horse too' }
    const { page, seed, codes } = await enrol(kit.clock, await enter(harness, '/account', browser(), who), who.password)
    const forms: [path: string, fields: Record<string, string>][] = [
      ['/account/password', { password: 'another horse' }],
      ['/account/email', { email: 'cara@new.example' }],
      ['/account/factors', {}],
      ['/account/factors/codes', {}]
    ]
    for (const [path, fields] of forms) {
      t.match((await page.browser.open(path === '/account/factors' ? '/account/factors/new' : path)).text, own.codeHint, path)
      for (const code of ['', '12', '000000', 'x'.repeat(100), codes[0]!.slice(0, -1)]) {
        const refused = await post(page, path, { ...fields, current_password: who.password, code })
        t.equal(refused.response.status, 400, `${path} ${code.slice(0, 8)}`)
        t.match(refused.text, errors.wrongCode)
      }
      const code = await nextCode(kit.clock, seed)
      t.match((await post(page, path, { ...fields, current_password: 'wrong', code })).text, own.wrongCurrent)
      const ok = await post(page, path, { ...fields, current_password: who.password, code })
      t.ok(ok.response.ok, `${path}: the code was not spent by the wrong password`)
      t.match((await post(page, path, { ...fields, current_password: who.password, code })).response.status, 400, `${path}: but now it is`)
      if (path === '/account/password') {
        who.password = 'another horse'
        Object.assign(page, await page.browser.open('/account/methods'))
      }
    }
    t.equal((await users.get(owner.user_id))?.epoch, 1, 'the password was changed once')
  })

  await t.test('codes anew, and the removal of the last app with its codes', async (t) => {
    const who = { account: 'dan@example.com', password: 'a horse too' }
    const { user_id } = await kit.app.identity.users.create({ data: who })
    const { page, seed, codes } = await enrol(kit.clock, await enter(harness, '/account', browser(), who), who.password)
    const kinds = async () => Object.values((await users.get(user_id))?.ways ?? {}).map(({ kind }) => kind).sort()
    const shown = await post(page, '/account/factors/codes', { current_password: who.password, code: codes[1]! })
    const renewed = readCodes(shown)
    t.equal(renewed.length, 10)
    t.match((await post(shown, '/account/factors/codes', { codes: readHidden(shown, 'codes'), kept: 'yes' })).text, own.done.codes)
    t.match((await post(page, '/account/factors/codes', { current_password: who.password, code: codes[2]! })).text, errors.wrongCode, 'a former code is dead')
    t.strictSame(await kinds(), ['recovery', 'totp'])

    const second = await post(page, '/account/factors', { current_password: who.password, code: renewed[0]! })
    const more = await post(second, pathOf(second), { code: await nextCode(kit.clock, readSeed(second)) })
    t.match(more.text, own.done['factor-more'], 'a further app comes without codes')
    t.strictSame(await kinds(), ['recovery', 'totp', 'totp'])

    const elsewhere = await enter(harness, '/account', browser(), who)
    t.equal(elsewhere.title, secondStep.title.totp)
    const [one, two] = listRemovals(more)
    const form = await page.browser.open(two!)
    t.match(form.text, own.removeWhy)
    t.match((await post(form, two!, { current_password: who.password, code: 'no' })).text, errors.wrongCode)
    const kept = await post(form, two!, { current_password: who.password, code: renewed[1]! })
    t.match(kept.text, own.done['factor-removed'])
    t.equal((await users.get(user_id))?.epoch, 0, 'sessions stay when the person unticks that')
    t.strictSame(await kinds(), ['recovery', 'totp'])
    t.equal((await post(kept, two!, { current_password: who.password, code: renewed[2]! })).response.status, 404, 'it is gone')

    const last = await page.browser.open(one!)
    t.match(last.text, own.removeLastWhy)
    t.match(last.text, /name="end_sessions"[^>]* checked/)
    const gone = await post(last, one!, { current_password: who.password, code: await nextCode(kit.clock, seed), end_sessions: 'yes' })
    t.match(gone.text, own.noFactors)
    t.strictSame(await kinds(), [])
    t.equal((await users.get(user_id))?.epoch, 1, 'everybody else is signed out, and this browser is signed in again')
    t.equal(await store.collection<CredentialRecord>('credentials').count({ equal: { user_id } }), 0)
    t.equal((await enter(harness, '/account/methods', browser(), who)).response.status, 200)
  })

  await t.test('a reset by mail removes no factor, and the password alone lets nobody in', async (t) => {
    const { kit: { app: { identity: { accounts } } } } = harness
    const before = (await readUser()).ways
    await accounts.forgotPassword(user.account, { ip: '192.0.2.1' })
    const mail = (await kit.mails.all()).findLast(({ subject }) => /new password/.test(subject))
    await accounts.setPassword(mail!.token!, 'the third horse')
    t.strictSame((await readUser()).ways, before)
    const page = await enter(harness, '/account', browser(), { account: user.account, password: 'the third horse' })
    t.equal(page.title, secondStep.title.totp)
  })

  await t.test('an enrolment that began in another session, or that another person began, is not found', async (t) => {
    const page = await enter(harness, '/account/methods', browser(), { account: 'dan@example.com', password: 'a horse too' })
    const begun = await post(page, '/account/factors', { current_password: 'a horse too' })
    const { user_id } = await kit.app.identity.users.create({ data: { account: 'eve@example.com', password: 'a horse too' } })
    const eve = await enter(harness, '/account/methods', browser(), { account: 'eve@example.com', password: 'a horse too' })
    t.equal((await eve.browser.open(pathOf(begun))).response.status, 404)
    t.equal((await post(eve, pathOf(begun), { code: await nextCode(kit.clock, readSeed(begun)) })).response.status, 404)
    for (const path of ['/account/factors/add', '/account/factors/remove?id=x', '/account/factors/remove']) t.equal((await eve.browser.open(path)).response.status, 404, path)
    t.equal((await users.get(user_id))?.ways, undefined)
    kit.clock.advance(31 * 60_000)
    const late = await enter(harness, '/account/methods', browser(), { account: 'dan@example.com', password: 'a horse too' })
    t.equal((await post(late, pathOf(begun), { code: await nextCode(kit.clock, readSeed(begun)) })).response.status, 404, 'half an hour is too late')
  })
})
