import type { Browser, Page } from '../oidc/browser.ts'

/** The redirect by which the provider sends a browser back to us. */
export async function answerOf (authorization: URL | undefined): Promise<string> {
  if (authorization === undefined) throw new Error('the browser was not sent to the provider')
  const response = await fetch(authorization, { redirect: 'manual' })
  await response.body?.cancel()
  return response.headers.get('location') ?? ''
}

/** Sends a browser to the provider: with the link of a page, or with the URL that begins a sign-in. */
export async function leave (browser: Browser, from: Page | string): Promise<URL> {
  const url = typeof from === 'string' ? from : /<a class="button" href="([^"]*)"/.exec(from.text)?.[1]?.replaceAll('&amp;', '&')
  if (url === undefined) throw new Error(`no link to a provider on the page '${(from as Page).title}'`)
  const { left, text } = await browser.open(url)
  if (left === undefined) throw new Error(`not sent to the provider: ${/<main>(.*)<\/main>/s.exec(text)?.[1]}`)
  return left
}

/** Signs in with the provider, up to the page of ours that follows, or to the redirect to the app. */
export async function through (browser: Browser, from: Page | string): Promise<Page> {
  return await agree(await browser.open(await answerOf(await leave(browser, from))))
}

/** Agrees to an account, if that is asked and its name is not a choice. */
export const agree = async (page: Page): Promise<Page> => page.title === 'Create your account' && !page.text.includes('name="account"') ? await page.submit({}) : page

/** The page's error, or what it says instead of one. */
export const readError = (page: Page): string => /role="alert"[^>]*>([^<]*)/.exec(page.text)?.[1] ?? `no error: ${page.title} ${page.left?.href ?? ''}`
