import type { Message } from './texts/en.ts'

/** The client that sent the user, as a page shows it. */
export interface PageClient { name: string }

/** A requested scope; `meaning` is what its resource says that it allows. */
export interface PageScope { scope: string, meaning?: string }

/** The form of a step of a sign-in. */
export interface StepView {
  action: string
  /** The app that the sign-in is for. Absent: the person's own account pages. */
  client?: PageClient
  /** What is filled in. */
  account?: string
  /** A hidden field, for a form whose address is no secret. */
  xsrf?: string
  error?: Message
  /** Whether somebody who is signed in is asked again. */
  again?: boolean
}

/** The pages of steps. */
export type StepPage = 'sign-in'

/** The data of each page. Texts may come from outside: the pages escape them. Our own are functions of the language's texts. */
export interface Pages {
  /** Asks for the account and the password. */
  'sign-in': StepView
  /**
   * Asks for consent. `otherAccount` is the URL of the sign-in page for another account, `resource` the name of the service
   * that the scopes are for, if it is not this one, `vouched` whether the operator vouches for the client, `owner` the account
   * of its owner.
   */
  consent: {
    action: string,
    client: PageClient,
    account: string,
    scopes: PageScope[],
    vouched: boolean
    owner?: string,
    resource?: string,
    redirectUri?: string,
    otherAccount?: string
  }
  /** Asks for the code that a device shows. */
  device: { action: string, xsrf: string, code?: string, error?: Message }
  /** Asks whether the device shows the code of the link that was opened. */
  'device-compare': { action: string, xsrf: string, code: string }
  /**
   * Asks whether the device is the user's own, and says what the app gets. `account` is the account that is signed in, `ip` the
   * address that the device's request came from.
   */
  'device-confirm': { action: string, xsrf: string, code: string, client: PageClient, scopes: PageScope[], account?: string, ip?: string }
  'device-done': { client?: PageClient }
  'sign-out': { action: string, xsrf: string, client?: PageClient }
  /** `next` is the client's post-logout redirect URI. */
  'signed-out': { client?: PageClient, next?: string }
  /**
   * `code` and `detail`, which is English, are for the developers of the app. `back` is where the app starts. Without it the
   * page leads to the account.
   */
  error: { message: Message, code?: string, detail?: string, back?: { client: PageClient, uri: string } }
}

export type PageName = keyof Pages
