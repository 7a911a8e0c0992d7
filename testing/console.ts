import type { FastifyInstance } from 'fastify'
import { openBrowser } from './browser.ts'

/** Somebody who is signed in to the console, in a browser without a socket. */
export interface TestConsole {
  /** Opens a page below the path of the console. @returns its HTML @throws Error with the status and the text of the page, from 400 on */
  open (path?: string): Promise<string>
  /**
   * Opens a page, and sends a form of it.
   * @param fields its `action` and what is filled in
   * @returns the HTML of the page that follows
   */
  send (path: string, fields: Record<string, string>): Promise<string>
}

/** Signs a person in to the console. It needs the option `console`. */
export type EnterConsole = (person: { account: string, password: string }) => Promise<TestConsole>

const toPage = (answer: { page: string } | { left: URL }): string => {
  if ('left' in answer) throw new Error(`the page leads out of the service, to ${answer.left.origin}`)
  return answer.page
}

const readHidden = (page: string, name: string): string => new RegExp(`name="${name}" value="([^"]*)"`).exec(page)?.[1] ?? ''

/** @param path that of the console, undefined where it is off */
export function createConsoleHelper (getApp: () => FastifyInstance, path: string | undefined): EnterConsole {
  return async function enter (person) {
    if (path === undefined) throw new Error('console: the option is off')
    const browser = await openBrowser(getApp())
    const open = async (below = '') => toPage(await browser.open(path + below))
    const form = await open()
    await browser.submit(form, { account: person.account, password: person.password })
    await open()
    return {
      open,
      async send (below, fields) {
        const page = await open(below)
        const hidden = { xsrf: readHidden(page, 'xsrf'), form_id: readHidden(page, 'form_id') }
        return toPage(await browser.open(path + below, new URLSearchParams({ ...hidden, ...fields })))
      }
    }
  }
}
