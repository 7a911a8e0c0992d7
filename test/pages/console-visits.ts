import type { StartOptions } from '../../testing/index.ts'
import type { Browser, Page } from '../oidc/browser.ts'
import { type Harness, atLocalhost } from '../oidc/harness.ts'
import { enter, post } from './visits.ts'

/** The option that turns the console on. */
export const CONSOLE: Pick<StartOptions, 'console' | 'roles'> = { console: { path: '/admin' }, roles: { admin: 'admin', manager: 'manager', support: 'support' } }

export const PASSWORD = 'a horse too'

/** Texts that would be markup, a script or another direction of the text, if pages showed them as they are. */
export const HOSTILE = ['<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', "' onfocus='alert(1)", '\u202etxt.exe', '</pre><b>bold</b>', 'javascript:alert(1)']

/** What must not stand in a page, whoever chose the texts in it. */
export const MARKUP = /<script>alert|<img src=x|<b>bold|\u202e|href="javascript:|<[^>]* onfocus='/

/** A service with a mail server that answers in turn, and then takes everything. */
export async function withMails (answers: (Error | null)[]): Promise<StartOptions> {
  return {
    ...await atLocalhost(),
    mail: {
      send () {
        const answer = answers.shift() ?? null
        return answer === null ? Promise.resolve() : Promise.reject(answer)
      }
    }
  }
}

/** Signs in to a page of the console as a new person with these roles. */
export async function enterConsole (harness: Harness, path: string, roles: string[], tab: Browser = harness.browser()): Promise<Page & { user_id: string }> {
  const account = `${roles.join('-') || 'plain'}-${Math.random().toString(36).slice(2)}@example.com`
  const { users } = harness.kit.app.identity
  const { user_id } = await users.create({ data: { account, password: PASSWORD } })
  if (roles.length > 0) await users.patch(user_id, { data: { roles: Object.fromEntries(roles.map((role) => [role, true])) } }, { user_id: 'root', isAdmin: true })
  return Object.assign(await enter(harness, path, tab, { account, password: PASSWORD }), { user_id })
}

/** Sends a form of a page of the console. */
export const send = async (page: Page, path: string, fields: Record<string, string>): Promise<Page> => await post(page, path, fields)

/** The entries of a list, as text. */
export function readEntries ({ text }: Page): string[] {
  const [, list = ''] = /<ul class="entries"[^>]*>\n(.*?)<\/ul>/s.exec(text) ?? []
  return [...list.matchAll(/<li><div>(.*?)<\/div>/gs)].map(([, entry = '']) => entry.replace(/<[^>]*>/g, '').replace(/\s+/g, ' ').trim())
}

/** The sections that the navigation links to, by their paths. */
export const readSections = ({ text }: Pick<Page, 'text'>): string[] => [...text.matchAll(/<li><a href="\/admin\/(\w+)"/g)].map(([, name = '']) => name)

/** The URL of a link of the pager. */
export const readPager = ({ text }: Page, rel: 'next' | 'prev'): string => new RegExp(`rel="${rel}" href="([^"]*)"`).exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
