import type { OwnEvent } from '../events/own.ts'
import type { Html } from './html.ts'
import type { QrCode } from '../qr.ts'
import type { ScriptView } from './script.ts'
import type { Device } from '../device.ts'
import type { TokenAuth } from '../records/client.ts'
import type { Message, Texts } from './texts/en.ts'
import type { UpstreamKind } from '../../schemas/upstream.ts'
import type { WayKind } from '../way.ts'

/** The client that sent the user, for display. `logo` is a data URL. */
export interface PageClient { name: string, logo?: string }

/** A secret of a client: the readable one, without a name, or a named one. */
export interface PageSecret { id: string, name?: string, last4?: string, created_at?: string, expires_at?: string, ended: boolean, last_used_at?: string }

/** A public key of a client. */
export interface PageKey { id: string, kid: string, algorithms: readonly string[], created_at: string, last_used_at?: string }

/** A link to an app. `vouched` is true if the operator vouches for it. */
export interface PageWay { client?: PageClient, uri: string, vouched: boolean }

/** Another provider. Absent kind: the server of an organization. */
export interface PageUpstream { id: string, name: string, kind?: UpstreamKind }

/** A link that leads on from an error. */
export interface Way { to: string, text: Message }

/**
 * A requested scope. `meaning` is its description by the resource. `at` is the name of the API where the app gets the person's roles
 * by the scope `roles`; elsewhere that scope only lets the app read them.
 */
export interface PageScope { scope: string, meaning?: string, at?: string }

/** The form of a sign-in step. */
export interface StepView extends ScriptView {
  action: string
  /** The app that the sign-in is for. Absent: the person's own account pages. */
  client?: PageClient
  /** The prefilled account. */
  account?: string
  /** A hidden field, for a form whose URL is not secret. */
  xsrf?: string
  error?: Message
  /** Whether a signed-in user is asked to sign in again. */
  again?: boolean
  /** Other providers: `to` is the link that begins the sign-in. Without it, the form of the page does: the person is signed in already. */
  upstreams?: readonly (PageUpstream & { to?: string })[]
  /** What the person should know before they go on. */
  notice?: Message
  /** Whether they have used a passkey that did not verify them. */
  unverified?: boolean
  /** Whether the person has chosen their password although the domain of their address has a provider. */
  direct?: boolean
  /** The URLs of the pages for a forgotten password and for sign-up. */
  forgot?: string
  signUp?: string
}

/** The form of a step that comes second: a code of this kind, or a passkey. */
interface SecondStepView extends Pick<StepView, 'action' | 'client' | 'xsrf' | 'error' | keyof ScriptView> {
  kind: 'totp' | 'recovery' | 'passkey'
  /** The kinds that the person may choose instead. */
  others: readonly string[]
}

/** A step that adds a second factor of this kind: why, the factor, or its recovery codes; `recovery` adds only these, after an import. */
interface EnrolStepView extends Pick<StepView, 'action' | 'client' | 'xsrf' | 'error' | 'passkey'> {
  kind: FactorKind | 'recovery'
  /** The kinds that they may add instead. */
  others?: readonly FactorKind[]
  view: { at: 'why' } | { at: 'app', seed: string, uri: string, qr: QrCode, proved: boolean } | { at: 'codes', codes: readonly string[], account: string }
}

/** A section of the account pages. */
export type AccountSection = keyof Texts['account']['sections']

/** The data of every account page. `passkey` is the proof by a passkey, where a form asks for one. */
export interface AccountView extends ScriptView {
  /** The path of the account pages. */
  base: string
  section: AccountSection
  /** The sections that are available to this person. */
  sections: readonly AccountSection[]
  account: string
  xsrf: string
  /** Whether the person has a second factor: then a form that asks for the password asks for a code too. */
  needsCode?: boolean
  /** Whether they have no password: then only a passkey is asked for, and of people without one nothing but their fresh sign-in. */
  noPassword?: boolean
  /** How many personal access tokens end with the person's sessions. */
  endingTokens?: number
  /** The action that a form has just completed. */
  done?: keyof Texts['account']['done']
  error?: Message
}

/** A personal access token, without the token itself. */
export interface PersonalTokenView {
  id: string
  name: string
  last4: string
  scopes: PageScope[]
  resource?: string
  created_at: string
  expires_at: string
  last_used_at?: string
  last_used_from?: string
}

/** An identity at another provider. */
export interface IdentityView {
  id: string
  /** What people call the provider. */
  name: string
  at: string
  last_used_at?: string
  off?: boolean
}

export type FactorKind = 'totp' | 'passkey'

/** A second factor of the person. */
export interface FactorView { id: string, name?: string, at: string, last_used_at?: string }

/** `foreign`: a passkey of an address that the service had before, or while passkeys are off. `place`: of its last use. */
export interface PasskeyFactorView extends FactorView { foreign?: boolean, place?: Device }

/** A browser in which the person is signed in, or an app that acts for them. */
export interface SessionView {
  /** The value that the form sends to end it. */
  id: string
  client?: PageClient
  place?: Device
  since: string
  last_used_at: string
  /** Whether this is the person's current browser. */
  current?: boolean
  /** Whether they have entered the console there. */
  isConsole?: boolean
}

/** A way in: with the name of its provider, and from where it was added. */
export interface WayView { kind: WayKind, name?: string, at: string, place?: string }

/** The data of each page. Strings may come from outside, so the pages escape them. Our own messages are functions of the texts. */
export interface Pages {
  /** Asks for the account and the password. */
  'sign-in': StepView
  /** Leads to the only provider of the domain of an address. The form goes on with the password, for people whom the rule does not concern. */
  'sign-in-elsewhere': Pick<StepView, 'action' | 'xsrf' | 'client'> & { account: string, upstream: PageUpstream & { to: string } }
  /** Asks for a code of an authenticator app, for a recovery code, or for a passkey. */
  'second-step': SecondStepView
  /** Adds a second factor, for a person of whom the service demands one. */
  enrol: EnrolStepView
  /**
   * Asks for consent. `otherAccount` is the URL of the sign-in page for another account. `resource` is the name of the service that
   * the scopes are for, if it is not this one. `vouched` is true if the operator vouches for the client. `ownerDomain` is the
   * domain of the verified address of the client's owner.
   */
  consent: {
    action: string,
    client: PageClient,
    account: string,
    scopes: PageScope[],
    vouched: boolean
    ownerDomain?: string,
    /** The host of a client that nobody has registered: only this is known about it. */
    document?: { host: string, print: string },
    resource?: string,
    redirectUri?: string,
    otherAccount?: string,
    /** The device that asks: the code that it shows, and the address that its request came from. */
    device?: { code: string, ip?: string }
  }
  /** Asks whether the person goes on with the account that is signed in. `otherAccount` is the URL of the sign-in page for another one. */
  'select-account': { action: string, client: PageClient, account: string, otherAccount: string }
  /**
   * After a sign-in with a recovery code, of which `left` are left. `to` is the page where the person continues; with `action` and `client` the
   * form continues to this app, and the account opens in another tab.
   */
  'code-used': { left: number } & ({ to: string } | { action: string, client: PageClient })
  /** Asks for the code that a device shows. */
  device: { action: string, xsrf: string, code?: string, error?: Message }
  /** Asks whether the device shows the code of the link that was opened. */
  'device-compare': { action: string, xsrf: string, code: string }
  'device-done': { client?: PageClient }
  'sign-out': { action: string, xsrf: string, client?: PageClient }
  /** `next` leads to the client's post-logout redirect URI. */
  'signed-out': { client?: PageClient, next?: PageWay }
  /**
   * Asks a new person, who has signed in with the provider `upstream`, for their account. `isFixed`: it is their proved address. `seen`: another
   * address, which gets a mail.
   */
  'choose-account': { action: string, xsrf: string, upstream: string, account: string, isFixed: boolean, seen?: string, error?: Message }
  /** Asks a person who has signed in with the provider `upstream` to another account than `account`, that of this browser, whether they change. */
  'switch-account': { action: string, xsrf: string, upstream: string, account: string }
  /** Asks for the account or address for a mailed link. `signIn` is the URL of the sign-in page, if there is one. */
  'ask-link': { kind: 'forgot' | 'sign-up', action: string, value?: string, signIn?: string, error?: Message }
  /** `typed` is what was typed, whether or not there is such an account. The form at `action` sends it again, or corrects it. */
  'link-sent': { kind: 'forgot' | 'sign-up', action: string, typed: string, again?: boolean }
  /**
   * `min` is the minimum length of a password in characters. `upstreams` may be used instead, and `only` is the name of the one by which
   * alone the person will sign in. `xsrf` is the secret of the sign-in that follows in this browser, and `signedInAs` another account that
   * it is signed in to.
   */
  'set-password': {
    action: string
    token: string
    /** How many personal access tokens end with it. */
    endingTokens?: number | undefined
    purpose: 'reset' | 'invite' | 'sign-up'
    account: string
    min: number
    upstreams?: readonly PageUpstream[]
    only?: string | undefined
    xsrf?: string
    signedInAs?: string
    error?: Message | undefined
  }
  /** Asks for confirmation before the link's action. */
  'confirm-link': { action: string, token: string, purpose: 'verify' | 'enrol', address?: string }
  /**
   * Asks for confirmation before everything goes that was added to an account. `address` is what it gets, `taken` its address from before, which
   * another account has by now. `only` is the provider by which alone the person signs in, `losesOnly` whether their identity there goes.
   */
  'confirm-undo': {
    action: string
    token: string
    /** How many personal access tokens end with it. */
    endingTokens?: number | undefined
    account: string
    goes: readonly WayView[]
    stays: readonly WayView[]
    address?: string | undefined
    taken?: string | undefined
    only?: string | undefined
    losesOnly?: boolean | undefined
  }
  /**
   * Asks the account that asked for a change of its address to confirm it. `account` is that account, `address` its new address.
   * `signedInAs` is the account that this browser is signed in with. `token` is absent after a sign-in on the way, and `xsrf` in a
   * browser without a sign-in.
   */
  'confirm-change': { action: string, account: string, address: string, signedInAs?: string, token?: string, xsrf?: string }
  /**
   * `to` is the app where the person continues. Without one, or one that the operator does not vouch for, they continue to their account.
   * `review` has the ways in that stay beside a new password or after an undo, and the URL of the page that undoes what can be undone.
   * `signIn` is the sign-in of this browser after a new password: `done`, at a further step, or left out because it is signed in to another
   * account. `isElsewhere`: the link is of the sign-in to an app that this browser has not begun.
   */
  'link-done': {
    what: 'password' | 'account' | 'account-linked' | 'verified' | 'undone' | 'enrolled'
    to?: PageWay | undefined
    review?: { stays: readonly WayView[], undo?: string | undefined }
    signIn?: { is: 'done' } | { is: 'next', to: string } | { is: 'other', account: string }
    isElsewhere?: boolean
  }
  /** The page at the root of the service. The URLs are absent for what is off. */
  home: { account?: string, docs?: string }
  'account-profile': AccountView & { name: string, created_at: string }
  /** `mayRemove` is true if the person has another way to sign in. */
  'account-password': AccountView & { mayRemove: boolean }
  'account-password-remove': AccountView
  /**
   * Every sign-in method. `codes` is the number of recovery codes that are left; absent without any set. `identities` is absent where there are
   * no other providers, and `upstreams` are those that the person may connect. The provider of an identity that is `off` is no longer configured.
   */
  'account-methods': AccountView & {
    passkeys: PasskeyFactorView[]
    apps: FactorView[]
    codes?: number
    identities?: readonly IdentityView[]
    upstreams: readonly PageUpstream[]
    mayAdd: boolean
    mayAddPasskey: boolean
  }
  /** Asks for a name and the proof before an authenticator app is added. */
  'account-app-add': AccountView & { name?: string }
  /** `proved` is true after the first right code. */
  'account-factor-add': AccountView & { id: string, seed: string, uri: string, qr: QrCode, proved: boolean }
  /** `isLast` is true for the last factor, whose recovery codes go with it. */
  'account-factor-remove': AccountView & { id: string, kind: FactorKind, name?: string, isLast: boolean }
  /** One factor: its name can be changed, and the page of its removal is below. */
  'account-factor': AccountView & PasskeyFactorView & { kind: FactorKind }
  /** Asks for the proof before the person connects an account at the provider `name`. */
  'account-identity-add': AccountView & Pick<IdentityView, 'id' | 'name'>
  'account-identity-remove': AccountView & Pick<IdentityView, 'id' | 'name'>
  /** Without `creation` it asks for a name and the proof; with it, the browser makes the passkey. */
  'account-passkey-add': AccountView & { name?: string, creation?: boolean }
  /** Without `codes` it asks for the proof to make them. `id` is that of the set, `factor` that of the factor that they come with. */
  'account-factor-codes': AccountView & { codes?: string[], id?: string, factor?: string }
  /** `email` is the person's verified address, `unverified` an address that is not verified yet. */
  'account-email': AccountView & { email?: string, unverified?: string, typed?: string }
  /** `apps` is the number of the person's clients, which are deleted too. */
  'account-delete': AccountView & { apps?: number }
  'account-deleted': object
  /** `more` is the number of omitted entries. */
  'account-sessions': AccountView & { browsers: SessionView[], apps: SessionView[], more: number }
  'account-apps': AccountView & {
    apps: {
      client_id: string
      client: PageClient
      host?: string | undefined
      redirectUri?: string | undefined
      vouched: boolean
      scopes: PageScope[]
      connected_at: string
      last_used_at: string
    }[]
    more: number
  }
  /** `clientEvents` are those of the person's clients that acted for themselves. */
  'account-activity': AccountView & { events: OwnEvent[], clientEvents: OwnEvent[] }
  /** `next` is the query of the next page. */
  'account-clients': AccountView & { clients: { client_id: string, client: PageClient, tokenAuth: TokenAuth, disabled: boolean }[], next?: string }
  /** `readable`: whether the client has a secret that can be shown. `secret` is present after the person has asked for it. */
  'account-client': AccountView & {
    client_id: string
    client: PageClient
    created_at: string
    tokenAuth: TokenAuth
    readable: boolean
    disabled: boolean
    redirectUris: string[]
    scopes: PageScope[]
    /** The readable secret, when it was asked for. */
    secret?: string
    /** Of a client that must authenticate. `match` is the tag of the list. */
    secrets: PageSecret[]
    match: string
    mayAdd: boolean
    /** A new secret. This page alone shows it. */
    added?: string
    keys: PageKey[]
    mayAddKey: boolean
    /** What was typed in a form that was refused. */
    typed?: { name?: string, expires?: string, key?: string, wrong?: 'name' | 'expires' | 'key' }
  }
  /** `may`: whether the person can make another token: yes, no since they have as many as they can, or no since they may not. `added` is a new one. */
  'account-tokens': AccountView & { tokens: PersonalTokenView[], may: 'all' | 'full' | 'none', added?: string }
  /** A place is where a token is for: `here`, or the URI of a resource, which has a name. `last` is the last day that it may work. */
  'account-token-new': AccountView & {
    places: { place: string, name?: string, scopes: PageScope[] }[]
    last: string
    /** What was typed in a form that was refused. */
    typed?: { name: string, expires: string, place: string, scopes: string[], wrong?: 'name' | 'expires' | undefined }
  }
  'account-data': AccountView
  /** Asks for confirmation of an irreversible action. The form sends `fields`. */
  'account-confirm': AccountView & {
    question: (texts: Texts, subject: Html) => Html
    subject: string
    warning: Message
    submit: Message
    action: string
    back: string
    fields: Record<string, string>
  }
  /** A form was carried out before, and its answer is gone. `page` is that of the account where the form stands. */
  'sent-already': { page?: string }
  /**
   * `code` and `detail` are for the developers of the app. `detail` is always in English. `back` is the start page of the app.
   * `ways` lead on, the most likely one first. Without these, or with a `back` that the operator does not vouch for, the page leads to the account.
   */
  error: { message: Message, code?: string, detail?: string, back?: PageWay, ways?: readonly Way[] }
}

export type PageName = keyof Pages
