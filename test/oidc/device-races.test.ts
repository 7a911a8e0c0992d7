import t, { type Test } from 'tap'
import { storeError } from '../../lib/errors.ts'
import type { Page } from './browser.ts'
import { getCode } from './harness.ts'
import { type Place, onBothStores, start, take } from './race-case.ts'

// Each order needs two signed-in pages, which takes long on a slow machine.
t.setTimeout(600_000)

/** Decides on the consent to a device. */
const decide = async (page: Page, isApproved: boolean): Promise<Page> => await page.submit({ decision: isApproved ? 'allow' : 'deny' })

function race (t: Test, place: Place): void {
  // Two browsers have the consent to one code open. The first decision counts, and the other browser says so.
  for (const [name, answers] of Object.entries({ 'two users approve': ['yes', 'yes'], 'one user approves and one refuses': ['yes', 'no'] })) {
    t.test(`${name} one device code: one decision counts, in any order`, async (t) => {
      const c = await start(t, place)
      const DONE = { yes: 'Device connected', no: 'The device wasn’t connected' }

      const browsers = [c.browser(), c.browser()]
      for (const browser of browsers) await getCode(c, c.app, {}, browser)

      /** Opens the consent in a signed-in browser. The returned function decides and resolves to the result shown. */
      async function prepare (user_code: string, which: 0 | 1) {
        const browser = browsers[which]!
        const typed = await (await browser.open('/api/v1/auth/device')).submit({ user_code })
        return async () => {
          const page = await decide(typed, answers[which] === 'yes')
          const result = [DONE.yes, DONE.no, 'This code was already used'].find((text) => `${page.title} ${page.text}`.includes(text))
          return result ?? page.text
        }
      }

      let k = 0
      for (let fired = true; fired; k++) {
        const { user_code, device_code } = (await c.post('device_authorization', { scope: 'openid' }, c.app)).body as Record<string, string>
        const [one, two] = [await prepare(user_code ?? '', 0), await prepare(user_code ?? '', 1)]
        const results: string[] = []
        const second = async () => { results.push(await two()) }
        fired = await c.interposed.at(k, second, async () => { results.push(await one()) })
        if (!fired) await second()
        const [done, other] = results.sort((a) => a === DONE.yes || a === DONE.no ? -1 : 1)
        t.equal(other, 'This code was already used', `order ${k}`)
        const { status, body } = await take(c, { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: device_code ?? '' })
        if (done === DONE.yes) t.equal(status, 200, `order ${k}: the device is connected`)
        else t.match([done, body], [DONE.no, { error: 'access_denied' }], `order ${k}: the device is refused`)
      }
      t.ok(k > 3, `${k} orders`)
    })
  }

  t.test('a store failure during the approval of a device code is shown as a failure', async (t) => {
    const c = await start(t, place)
    const browser = c.browser()
    await getCode(c, c.app, {}, browser)
    const outcomes = new Set<string>()
    for (let [k, fired] = [0, true]; fired; k++) {
      const { user_code = '' } = (await c.post('device_authorization', { scope: 'openid' }, c.app)).body as Record<string, string>
      const typed = await (await browser.open('/api/v1/auth/device')).submit({ user_code })
      fired = await c.interposed.failAt(k, storeError(new Error('broken')), async () => {
        const page = await decide(typed, true)
        outcomes.add(`${page.response.status} ${page.text.includes('already used') ? 'already used' : page.title}`)
      })
    }
    t.match([...outcomes].sort(), [/^200 Device connected/, ...Array(outcomes.size - 1).fill(/^503 (?!used already)/)], [...outcomes].join())
  })
}

onBothStores(t, race)
