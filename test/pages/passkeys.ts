import { readPasskeyOptions } from '../../testing/passkey.ts'
import { type AnswerChanges, type Authenticator, type AuthenticatorSettings, createAuthenticator } from '../../testing/authenticator.ts'
import type { Page } from '../oidc/browser.ts'
import { readCodes, readHidden } from './factors.ts'
import { post } from './visits.ts'

/** The answer of an authenticator to what a page asks. */
export const answer = (page: Page, key: Authenticator, changes?: AnswerChanges): { assertion: string } => (
  { assertion: key.get(readPasskeyOptions(page.text).options, changes) })

/** Whether a page has something for a passkey. */
export const asksPasskey = ({ text }: Page): boolean => text.includes('data-passkey=')

/** The page that has the browser make a passkey, after the proof. */
export async function beginPasskey (page: Page, proof: Record<string, string>, name = 'Laptop'): Promise<Page> {
  return await post(await page.browser.open('/account/factors/passkeys'), '/account/factors/passkeys', { name, ...proof })
}

export interface EnrolledPasskey { page: Page, key: Authenticator, codes: string[] }

/** Adds a passkey of a person who is signed in on the page, as they do it. The first factor brings recovery codes. */
export async function enrolPasskey (page: Page, proof: Record<string, string>, settings: AuthenticatorSettings = {}, changes: AnswerChanges = {}): Promise<EnrolledPasskey> {
  const begun = await beginPasskey(page, proof)
  const key = createAuthenticator(page.browser.origin, settings)
  const shown = await post(begun, '/account/factors/passkeys', { name: 'Laptop', attestation: key.create(readPasskeyOptions(begun.text).options, changes) })
  const codes = readCodes(shown)
  if (codes.length === 0) return { page: shown, key, codes }
  return { page: await post(shown, '/account/factors/codes', { codes: readHidden(shown, 'codes'), factor: readHidden(shown, 'factor'), kept: 'yes' }), key, codes }
}

/** Begins a sign-in to the account with a passkey. */
export async function enterByPasskey (browser: Page['browser'], key: Authenticator, changes: AnswerChanges = {}, path = '/account'): Promise<Page> {
  const form = await browser.open(path)
  return await post(form, form.response.url, { way: 'passkey', ...answer(form, key, changes) })
}
