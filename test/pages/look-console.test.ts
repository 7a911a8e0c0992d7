import t from 'tap'
import type { Language } from '../../lib/pages/texts/language.ts'
import { createConsoleLook, renderConsole } from '../../lib/pages/console/index.ts'
import { createLook } from '../../lib/pages/look.ts'
import { skip } from './chromium.ts'
import { CONSOLE_ROWS } from './console-sights.ts'
import { checkSights } from './look.ts'

t.setTimeout(300_000)

const LOOK = createConsoleLook(createLook({ name: 'Northwind ID', getHome: () => '/account' }))

const WIDTHS = { wide: { width: 1280, height: 900 }, phone: { width: 390, height: 844 }, small: { width: 360, height: 800 }, narrow: { width: 320, height: 568 } }

t.test('every page of the console, wide and narrow, light and dark, in every language', { skip }, async (t) => {
  const sights = CONSOLE_ROWS.map(([row, render]) => ({
    row, render: (language: Language) => renderConsole(render, LOOK, { language, zone: 'Europe/Zurich', query: '' })
  }))
  // A list is as long as it is, and the style of the console is in each of its pages.
  await checkSights(t, sights, { look: LOOK, widths: WIDTHS, pictures: ['wide', 'phone'], hasLimit: false })
})
