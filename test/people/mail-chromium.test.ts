import t from 'tap'
import { composeMail } from '../../lib/mail/compose.ts'
import { createMailLook } from '../../lib/mail/look.ts'
import { OUR_LANGUAGES } from '../../lib/pages/texts/language.ts'
import { findViolations, skip, startChromium, takePicture, withTab } from '../pages/chromium.ts'

const LOGO = 'data:image/gif;base64,R0lGODlhKAAUAIAAAP///wAAACwAAAAAKAAUAAACIISPqcvtD6OctNqLs968+w+G4kiW5omm6sq27gvHsloAADs='
const link = `https://id.example/account/reset?token=${'W'.repeat(43)}`

t.test('mails look right on light and dark backgrounds and on narrow screens', { skip }, async (t) => {
  startChromium(t)
  const look = createMailLook({ logo: LOGO, accent: '#b3261e #f2b8b5', helpAddress: 'help@example.org', termsUrl: 'https://example.org/terms', privacyUrl: 'https://example.org/privacy' })
  for (const [name, kind, language, service, mailLook] of [
    ['mail', 'sign-up', 'en', 'Acme', look],
    ['mail-long', 'undone', 'de', 'Bundesversicherungsgesellschaft der Nordseeküste, e. V., Cuxhaven'.slice(0, 64), createMailLook()]
  ] as const) {
    const { html } = composeMail(kind, { to: 'ann@example.com', link, language, languages: OUR_LANGUAGES, look: mailLook, values: { service } })
    for (const colorScheme of ['light', 'dark'] as const) {
      for (const width of [800, 320]) {
        await withTab(t, { colorScheme, viewport: { width, height: 600 } }, async (tab) => {
          await tab.setContent(html.replaceAll('cid:logo', LOGO))
          await takePicture(tab, `${name}-${colorScheme}-${width}`)
          t.ok(await tab.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${name} ${width}: no sideways scroll`)
          // The landmarks of a page: a mail is shown inside one.
          t.strictSame(await findViolations(tab, "axe.run({ rules: { region: { enabled: false }, 'landmark-one-main': { enabled: false } } })"), [], `${name} ${colorScheme}`)
        })
      }
    }
  }
})
