import t from 'tap'
import { generateCode } from '../../lib/ways/totp.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { importLines } from '../helpers/import.ts'
import { askCode, eachStore, startHarness } from '../oidc/harness.ts'
import { enter, post } from '../pages/visits.ts'

const SEED = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'
const RIGHT = 'the former password'
const migrate = { verify: (_account: string, password: string) => password === RIGHT, create: true }

eachStore(t, 'every road that takes a password asks the former system, and factors come after it', async (t, start) => {
  const harness = await start({ migrate })
  const { kit, browser } = harness
  const { users, store } = kit.app.identity
  const app = await harness.register()
  const roads: Record<string, (account: string, password: string) => Promise<boolean>> = {
    program: async (account, password) => await users.verify(account, password) !== null,
    'account pages': async (account, password) => (await enter(harness, '/account', browser(), { account, password })).title === 'Profile',
    async app (account, password) {
      const page = await (await browser().open(askCode(app).url)).submit({ account, password })
      return page.left?.searchParams.has('code') ?? false
    }
  }
  for (const [name, road] of Object.entries(roads)) {
    const [fresh, marked] = [`new-${name.replace(' ', '-')}`, `marked-${name.replace(' ', '-')}`]
    await importLines(kit.app.identity, [{ account: marked }], { lazy: true })
    for (const account of [fresh, marked]) {
      t.notOk(await road(account, 'wrong'), `${name}: ${account}`)
      t.ok(await road(account, RIGHT), `${name}: ${account}`)
    }
  }

  await importLines(kit.app.identity, [{ account: 'careful', totp: [{ secret: SEED }] }], { lazy: true })
  kit.clock.advance(60_000)
  const second = await enter(harness, '/account', browser(), { account: 'careful', password: RIGHT })
  t.match(second.text, /name="code"/, 'the imported app is asked for')
  t.notMatch(second.title, 'Profile')
  t.match(await store.collection<UserRecord>('users').getBy('account', 'careful'), { password: String, has_factor: true, imported_lazy: undefined })
  const last = await post(second, second.response.url, { code: await generateCode(SEED, kit.clock.now()) })
  t.notMatch(last.text, /role="alert"/)
})

t.test('a person of whom a factor is demanded does not get in by the former system alone', async (t) => {
  const harness = await startHarness(t, { migrate, factors: 'required' })
  const page = await enter(harness, '/account', harness.browser(), { account: 'fresh', password: RIGHT })
  t.not(page.title, 'Profile')
  t.match(page.text, /second factor|authenticator/i)
})
