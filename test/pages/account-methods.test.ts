import t from 'tap'
import { en } from '../../lib/pages/texts/en.ts'
import { fillText } from '../../lib/pages/texts/template.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { atLocalhost, eachStore } from '../oidc/harness.ts'
import type { Page } from '../oidc/browser.ts'
import { answerOf } from '../upstreams/through.ts'
import { enrol, listRemovals, nextCode } from './factors.ts'
import { answer, enrolPasskey } from './passkeys.ts'
import { addUser, enter, post } from './visits.ts'

const { account: own, common, signIn: signInTexts } = en

const strip = (text: string): string => text.replaceAll(/<span class="hidden">.*?<\/span>/g, '').replaceAll(/<[^>]*>/g, '').trim()

const readMain = ({ text }: Page): string => /<main>(.*)<\/main>/s.exec(text)?.[1] ?? ''
const readHeadings = (page: Page): string[] => [...readMain(page).matchAll(/<h2[^>]*>(.*?)<\/h2>/g)].map(([, heading = '']) => strip(heading))

/** The entries of the list: the first words of each, and its buttons. */
const readEntries = (page: Page): { first: string, buttons: string[], links: number }[] => (
  [...readMain(page).matchAll(/<li>\n<div>(.*?)<\/div>\n(.*?)<\/li>/gs)].map(([, what = '', rest = '']) => ({
    first: strip(what).split('\n')[0]!,
    buttons: [...rest.matchAll(/<a class="button"[^>]*>(.*?)<\/a>/g)].map(([, label = '']) => strip(label)),
    links: [...`${what}${rest}`.matchAll(/<(a|button) /g)].length
  })))

const readForms = (page: Page): string[] => [...readMain(page).matchAll(/<form.*?<\/form>/gs)].map(([form]) => form)
const buttonsOf = (form: string): string[] => [...form.matchAll(/<button[^>]*type="submit"[^>]*>(.*?)<\/button>/g)].map(([, label = '']) => strip(label))

eachStore(t, 'the sign-in methods of a person', async (t, start) => {
  const harness = await start({ upstream: { link: 'confirm' }, ...await atLocalhost() })
  const { kit, browser } = harness
  const users = kit.app.identity.store.collection<UserRecord>('users')
  const connect = fillText(own.connect, { name: 'Test' })
  let count = 0

  async function arrive (path = '/account/methods') {
    const user = await addUser(harness, `person${count++}@example.com`)
    return { user, page: await enter(harness, path, browser(), user) }
  }

  await t.test('who has a password only sees what they can add, passkeys first', async (t) => {
    const { page } = await arrive()
    t.equal(page.title, own.sections.methods)
    t.strictSame(readHeadings(page), [own.passkeys, common.password, own.identities, own.twoStep])
    t.strictSame(readEntries(page).map(({ buttons }) => buttons), [[own.addPasskey], [own.changePassword], [own.addApp]])
    t.match(readMain(page), own.noFactors)
    t.match(readMain(page), own.noIdentities)
    t.match(strip(readMain(page)), connect)
    t.strictSame(readForms(page), [])
  })

  await t.test('each entry has one button, and nothing is removed or renamed on the list', async (t) => {
    const { user, page } = await arrive()
    const { page: first, seed } = await enrol(kit.clock, page, user.password)
    const proof = async () => ({ current_password: user.password, code: await nextCode(kit.clock, seed) })
    await enrolPasskey(first, await proof())
    kit.upstream({ sub: 'ada' })
    const adding = await page.browser.open('/account/identities/add?upstream=test')
    const { left } = await post(adding, '/account/identities/add?upstream=test', await proof())
    const linked = await page.browser.open(await answerOf(left))
    t.match(linked.text, own.done.identity)
    t.equal(new URL(linked.response.url).pathname, '/account/methods')
    const entries = readEntries(linked)
    t.strictSame(entries.map(({ first, buttons }) => [first, ...buttons]), [
      ['Laptop', own.manage],
      [own.addPasskeyWhy, own.addPasskey],
      [own.hasPassword, own.changePassword],
      ['Test', own.disconnectIdentity],
      ['Phone', own.manage],
      ['', own.addAnotherApp],
      [own.codes, own.newCodes]
    ])
    t.ok(entries.every(({ links }) => links === 1))
    t.match(readMain(linked), '10 codes left.')
    t.strictSame(readForms(linked), [])
    t.notMatch(linked.text, 'data-passkey')
    t.notMatch(readMain(linked), /factors\/remove|password\/remove/)
    t.match(linked.text, `${own.manage}<span class="hidden">`, 'the buttons differ for a screen reader')
  })

  await t.test('a method has a page with its name, and its removal is on another one', async (t) => {
    const { user, page } = await arrive()
    const { page: list, codes } = await enrol(kit.clock, page, user.password)
    const path = listRemovals(list)[0]!
    const managed = await list.browser.open(path.replace('remove', 'rename'))
    const [rename, ...others] = readForms(managed)
    t.strictSame([buttonsOf(rename!), others], [[own.save], []])
    t.notMatch(rename, own.remove)
    t.match(managed.text, `<a href="${path}">`)
    t.match(managed.text, '<a href="/account/methods">Cancel</a>')
    t.match(managed.text, fillText(own.addedAt, { time: '' }).trim())
    const removal = await managed.browser.open(path)
    t.strictSame(readForms(removal).map(buttonsOf), [[own.remove]])
    t.notMatch(removal.text, 'name="name"')
    t.match(removal.text, '<a href="/account/methods">Cancel</a>')

    const renamed = await post(managed, path.replace('remove', 'rename'), { name: '<i>Tablet' })
    t.match(renamed.text, own.done.renamed)
    t.equal(new URL(renamed.response.url).pathname, '/account/methods')
    t.match(renamed.text, '&lt;i&gt;Tablet')
    const gone = await post(removal, path, { current_password: user.password, code: codes[0]! })
    t.match(gone.text, own.done['factors-off'])
    t.equal(new URL(gone.response.url).pathname, '/account/methods')
    t.equal((await users.get(user.user_id))?.ways, undefined)
  })

  await t.test('every form has a page of its own, which leads back to the list', async (t) => {
    const { user, page } = await arrive()
    const { page: list } = await enrol(kit.clock, page, user.password)
    for (const path of ['/password', '/password/remove', '/factors/new', '/factors/passkeys', '/factors/codes', '/identities/add?upstream=test']) {
      const form = await list.browser.open(`/account${path}`)
      t.equal(readForms(form).length, 1, path)
      t.match(form.text, '<a href="/account/methods">Cancel</a>', path)
      t.match(form.text, `<a href="/account/methods" aria-current="page">${own.sections.methods}</a>`, path)
    }
    const wrong = await post(list, '/account/factors', { name: 'Tablet', current_password: 'wrong', code: '000000' })
    t.match([wrong.response.status, wrong.text], [400, /value="Tablet"/], 'what was typed is there again')
    t.match((await post(list, '/account/password', { current_password: user.password, code: 'wrong', password: 'x' })).response.status, 400)
  })

  await t.test('the lists of earlier releases lead here, also through a sign-in', async (t) => {
    const { user, page } = await arrive()
    for (const former of ['factors', 'identities']) {
      const answer = await page.browser.fetch(`/account/${former}`)
      t.match([answer.status, answer.headers.get('location')], [303, '/account/methods'])
      await answer.body?.cancel()
      t.equal((await enter(harness, `/account/${former}`, browser(), user)).title, own.sections.methods)
      t.equal((await enter(harness, `/account/sign-in?next=${former}`, browser(), user)).title, own.sections.methods, 'a sign-in that began before an upgrade')
    }
    t.match((await page.browser.open('/account/password')).text, 'name="current_password"', 'a password has its page as before')
  })

  await t.test('it asks for a fresh sign-in', async (t) => {
    const { page } = await arrive()
    kit.clock.advance(601_000)
    t.equal((await page.browser.open('/account/methods')).title, signInTexts.again)
  })

  await t.test('who has no password can set one', async (t) => {
    const { user, page } = await arrive()
    const { page: list, key } = await enrolPasskey(page, { current_password: user.password })
    const removal = await list.browser.open('/account/password/remove')
    const bare = await post(removal, '/account/password/remove', answer(removal, key))
    t.match(bare.text, own.done['password-removed'])
    t.match(readEntries(bare).map(({ first, buttons }) => [first, ...buttons])[2], [own.hasNoPassword, own.setPassword])
    const form = await bare.browser.open('/account/password')
    t.strictSame(readForms(form).map(buttonsOf), [[own.setPassword]])
    t.notMatch(form.text, '/password/remove')
    const set = await post(form, '/account/password', { password: 'another horse', ...answer(form, key) })
    t.match(set.text, own.done.password)
    t.equal(new URL(set.response.url).pathname, '/account/methods')
  })
})

eachStore(t, 'what is off is not offered', async (t, start) => {
  const harness = await start({ factors: 'off' })
  const page = await enter(harness, '/account/methods')
  t.strictSame(readHeadings(page), [common.password])
  t.strictSame(readEntries(page).map(({ buttons }) => buttons), [[own.changePassword]])
  t.equal((await page.browser.open('/account/identities')).title, own.sections.methods)
})
