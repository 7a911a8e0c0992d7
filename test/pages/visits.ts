import { randomBytes } from 'node:crypto'
import type { Browser, Page } from '../oidc/browser.ts'
import type { Harness } from '../oidc/harness.ts'

export const FIREFOX = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0' }

/** The value of the page's hidden field, which all its forms have. */
export const readXsrf = (page: Page) => /name="xsrf" value="([^"]*)"/.exec(page.text)?.[1] ?? ''

/** The one-time id of the page's forms. */
export const readFormId = (page: Page) => /name="form_id" value="([^"]*)"/.exec(page.text)?.[1] ?? ''

/** Posts a form of the page, with an id of its own: as often as it is posted, it is another form. */
export async function post (page: Page, path: string, fields: Record<string, string> = {}, headers: Record<string, string> = {}): Promise<Page> {
  const { browser } = page
  return await browser.open(path, {
    method: 'POST',
    body: new URLSearchParams({ xsrf: readXsrf(page), form_id: randomBytes(16).toString('base64url'), ...fields }),
    headers: { origin: browser.origin, ...FIREFOX, ...headers }
  })
}

/** Signs in to a page of the account. */
export async function enter ({ user, browser }: Pick<Harness, 'user' | 'browser'>, path = '/account', tab: Browser = browser(), who: { account: string, password: string } = user): Promise<Page> {
  const form = await tab.open(path)
  return await post(form, form.response.url, { account: who.account, password: who.password })
}

/** Whether the page asks for an account and its password. */
export const isSignedOut = (page: Page) => page.title.startsWith('Sign in')

/** Another user. */
export async function addUser ({ kit }: Harness, account: string): Promise<{ user_id: string, account: string, password: string }> {
  const password = 'a horse too'
  return { ...await kit.app.identity.users.create({ data: { account, password } }), account, password }
}
