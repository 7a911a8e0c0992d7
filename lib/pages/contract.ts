import type { OwnEvent } from '../events/own.ts'
import type { Html } from './html.ts'
import type { Place } from '../sign-in/place.ts'
import type { Message, Texts } from './texts/en.ts'

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
  /** The URL of the page for a forgotten password, and of the one that makes an account. */
  forgot?: string
  signUp?: string
}

/** The pages of steps. */
export type StepPage = 'sign-in'

/** A part of the account pages, by its path below theirs. */
export type AccountSection = keyof Texts['account']['sections']

/** What every account page shows. */
export interface AccountView {
  /** The path of the account pages. */
  base: string
  section: AccountSection
  /** The sections that this person has. */
  sections: readonly AccountSection[]
  account: string
  xsrf: string
  /** What a form has just done. */
  done?: keyof Texts['account']['done']
  error?: Message
}

/** A browser in which the person is signed in, or an app that acts for them. */
export interface SessionView {
  /** The value that the form sends to end it. */
  id: string
  client?: PageClient
  place?: Place
  since: string
  last_used_at: string
  /** This browser. */
  current?: boolean
}

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
  /** Asks where a link is to be mailed. `signIn` is the URL of the sign-in page, if there is one. */
  'ask-link': { kind: 'forgot' | 'sign-up', action: string, value?: string, signIn?: string, error?: Message }
  'link-sent': { kind: 'forgot' | 'sign-up' }
  /** `min` is the number of characters that a password needs. */
  'set-password': { action: string, token: string, purpose: 'reset' | 'invite' | 'sign-up', account: string, min: number, error?: Message }
  /** Asks before a link does what it is for. */
  'confirm-link': { action: string, token: string, purpose: 'verify' | 'change' | 'undo', address?: string }
  /** `to` is where the person goes on, if it is not their account. */
  'link-done': { what: 'password' | 'account' | 'verified' | 'undone', to?: string }
  'account-profile': AccountView & { name: string, created_at: string }
  'account-password': AccountView
  /** `email` is the address that the person has shown to be theirs, `unverified` the one that they have not. */
  'account-email': AccountView & { email?: string, unverified?: string, typed?: string }
  'account-delete': AccountView
  'account-deleted': object
  /** `more` is the number of entries that are left out. */
  'account-sessions': AccountView & { browsers: SessionView[], apps: SessionView[], more: number }
  'account-apps': AccountView & {
    apps: { client_id: string, client: PageClient, vouched: boolean, scopes: PageScope[], connected_at: string, last_used_at: string }[]
    more: number
  }
  'account-activity': AccountView & { events: OwnEvent[] }
  /** `next` is the query of the next page. */
  'account-clients': AccountView & { clients: { client_id: string, client: PageClient, confidential: boolean, disabled: boolean }[], next?: string }
  /** `secret` is shown once it was asked for. */
  'account-client': AccountView & {
    client_id: string
    client: PageClient
    created_at: string
    confidential: boolean
    disabled: boolean
    redirectUris: string[]
    scopes: PageScope[]
    secret?: string
  }
  /** Asks before something that cannot be undone. The fields are sent with the answer. */
  'account-confirm': AccountView & { question: (texts: Texts, subject: Html) => Html, subject: string, warning: Message, submit: Message, action: string, back: string, fields: Record<string, string> }
  /**
   * `code` and `detail`, which is English, are for the developers of the app. `back` is where the app starts. Without it the
   * page leads to the account.
   */
  error: { message: Message, code?: string, detail?: string, back?: { client: PageClient, uri: string } }
}

export type PageName = keyof Pages
