import type { Page } from '../oidc/browser.ts'
import { en } from '../../lib/pages/texts/en.ts'
import { generateCode } from '../../lib/ways/totp.ts'
import { post } from './visits.ts'

const PERIOD = 30_000

/** The clock of a service. */
interface Clock { now (): number, advance (milliseconds: number): void }

/** The next code of a seed: the service's clock goes on, because each step is good once. */
export async function nextCode (clock: Clock, seed: string): Promise<string> {
  clock.advance(PERIOD)
  return await generateCode(seed, clock.now())
}

/** The seed that a page shows. */
export const readSeed = (page: Page): string => (/id="seed">([^<]*)</.exec(page.text)?.[1] ?? '').replaceAll(' ', '')

/** The recovery codes that a page shows. */
export const readCodes = ({ text }: Page): string[] => [...text.matchAll(/<li><code>([^<]*)<\/code>/g)].map(([, code = '']) => code)

/** A hidden field of a page. */
export const readHidden = (page: Page, field: string): string => new RegExp(`name="${field}" value="([^"]*)"`).exec(page.text)?.[1] ?? ''

/** The pages that remove the factors of a list of sign-in methods: each is behind the page of its factor. */
export const listRemovals = ({ text }: Page): string[] =>
  [...text.matchAll(/href="([^"]*factors\/)rename([^"]*)"/g)].map(([, start = '', end = '']) => `${start}remove${end}`)

/** Continues from the page that follows a sign-in with a recovery code. */
export async function passCodeUsed (page: Page): Promise<Page> {
  if (page.title !== en.codeUsed.title) throw new Error(`the page is ${page.title}`)
  const to = /class="button primary" href="([^"]*)"/.exec(page.text)?.[1]
  return to === undefined ? await page.submit() : await page.browser.open(to.replaceAll('&amp;', '&'))
}

/** The path of a page with its query. */
export const pathOf = ({ response: { url } }: Page): string => url.slice(new URL(url).origin.length)

export interface Enrolled { page: Page, seed: string, codes: string[] }

/** Adds the first authenticator app of a person who is signed in on the page, as they do it. */
export async function enrol (clock: Clock, page: Page, password: string): Promise<Enrolled> {
  const list = await page.browser.open('/account/methods')
  const begun = await post(list, '/account/factors', { name: 'Phone', current_password: password })
  const seed = readSeed(begun)
  const shown = await post(begun, pathOf(begun), { code: await nextCode(clock, seed) })
  const fields = { codes: readHidden(shown, 'codes'), factor: readHidden(shown, 'factor'), kept: 'yes' }
  return { page: await post(shown, '/account/factors/codes', fields), seed, codes: readCodes(shown) }
}

/** Adds the first authenticator app within a sign-in that demands one, from the page that says why. */
export async function enrolInSignIn (clock: Clock, why: Page): Promise<Enrolled> {
  const begun = await why.submit()
  const seed = readSeed(begun)
  const shown = await begun.submit({ code: await nextCode(clock, seed) })
  return { page: await shown.submit({ kept: 'yes' }), seed, codes: readCodes(shown) }
}
