import t from 'tap'
import { en } from '../../lib/pages/texts/en.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { generateCode } from '../../lib/ways/totp.ts'
import { BCRYPT, importLines } from '../helpers/import.ts'
import { nextCode, passCodeUsed, readCodes } from '../pages/factors.ts'
import { askCode, eachStore, signIn } from './harness.ts'

const SEED = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXQ'

eachStore(t, 'a person whose authenticator app an import has brought', async (t, start) => {
  const harness = await start({})
  const { kit } = harness
  const services = kit.app.identity
  const app = await harness.register()
  const users = services.store.collection<UserRecord>('users')
  const account = 'imported@example.com'
  const used = await generateCode(SEED, kit.clock.now())
  const { verdicts } = await importLines(services, [{ account, password: { hash: BCRYPT }, totp: [{ secret: SEED }] }])
  t.match(verdicts, [{ result: 'created' }])
  const user_id = verdicts[0]!.user_id!
  const as = { ...harness, user: { ...harness.user, user_id, account, password: 'first' } }
  const asked = () => askCode(app).url
  const kinds = async () => Object.values((await users.get(user_id))!.ways ?? {}).map(({ kind }) => kind).sort()

  const code = await signIn(as, asked())
  t.equal(code.title, en.secondStep.title.totp, 'the first sign-in asks for a code')
  const refused = await code.submit({ code: used })
  t.equal(refused.left, undefined, 'a code from the time of the import may have been used in the other system')
  const why = await refused.submit({ code: await nextCode(kit.clock, SEED) })
  t.match([why.title, why.left], [en.account.codes, undefined], 'who has proved everything gets codes first')
  t.match(why.text, en.enrol.imported)
  t.strictSame(await kinds(), ['totp'])
  t.match(await why.browser.open(asked()), { title: 'Sign in', left: undefined }, 'nobody gets around the page: there is no session yet')
  const again = await why.browser.open(why.response.url)
  t.match([again.title, again.left], [en.account.codes, undefined], 'who comes back goes on there')
  const unkept = await again.submit({ kept: 'yes' })
  t.equal(readCodes(unkept).length, 10, 'a confirmation of codes that were not shown counts for nothing')
  t.strictSame(await kinds(), ['totp'])
  const shown = await unkept.submit()
  t.notSame(readCodes(shown), readCodes(unkept), 'codes are shown once')
  const done = await shown.submit({ kept: 'yes' })
  t.type(done.left, URL)
  t.strictSame(await kinds(), ['recovery', 'totp'])

  const later = await (await signIn(as, asked())).submit({ code: await nextCode(kit.clock, SEED) })
  t.type(later.left, URL, 'later sign-ins show no codes')
  const lost = await signIn(as, asked())
  const link = /<a href="([^"]*way=recovery)"/.exec(lost.text)?.[1] ?? ''
  t.type((await passCodeUsed(await (await lost.browser.open(link.replaceAll('&amp;', '&'))).submit({ code: readCodes(shown)[0]! }))).left, URL, 'the codes that were kept count')
})
