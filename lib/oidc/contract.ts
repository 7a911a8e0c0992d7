/**
 * The interface of the authorization server for the rest of the service. It uses no types of oidc-provider, because they are not
 * published.
 * @module
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { SignLogout } from '../logout/attempt.ts'
import type { PageScope, PageWay } from '../pages/contract.ts'
import type { Acr, Proof } from '../proofs.ts'
import type { Progress } from '../sign-in/steps/step.ts'
import type { Renewal } from '../upstreams/standing.ts'

/** Limits of the token endpoint. */
export interface TokenLimitSettings {
  /** Tokens a minute that the clients of one owner get for themselves, if nobody vouches for them. Absent or false: no limit. */
  clientTokens?: number | false
  /** Refresh tokens that are redeemed a minute and grant. Absent or false: no limit. */
  grantTokens?: number | false
}

/** The operator's options; schemas/oidc.ts describes each. */
export interface OidcSettings extends TokenLimitSettings {
  /** Whether users may sign up. If so, an app may request it with prompt=create. */
  signUp?: boolean
  /** Clients from documents. Absent: there are none. */
  documents?: object | undefined
  accessTtl: number
  refreshTtl: number
  sessionTtl: number
  sessionMax: number
  refreshMax: number
  refreshGrace: number
}

/**
 * oidc-provider counts whole seconds of the wall clock; records carry the time of the service's clock. The two differ only in
 * tests that move the service's clock.
 */
export interface Times {
  now (): number
  lifetime (seconds: number): { created_at: string, expired_at: string }
  /** A stored time as seconds of the wall clock. */
  toEpoch (timestamp: string): number
  /** The inverse. */
  fromEpoch (seconds: number): string
}

/** An authorization request that waits for its user, as our pages see it. */
export interface Interaction {
  uid: string
  /** The URL that the page's form is posted to. */
  action: string
  prompt: 'login' | 'consent' | 'create' | 'select_account' | 'code_used'
  clientId: string
  clientName: string
  /** Whether the operator vouches for the client. */
  vouched: boolean
  /** Our copy of its image then, as a data URL. */
  logo?: string
  /** The id of the user who owns the client. Absent: nobody. */
  owner?: string
  /** For a client from a document: the host of its id, and what a decision is about. */
  document?: { host: string, print: string }
  /** The resource that the tokens are for, if it is not this service. */
  resource?: { name: string, uri: string }
  redirectUri?: string
  /** The languages the client asks for (OpenID Connect Core, 3.1.2.1). */
  locales?: string
  /** The other provider that the client asks for. */
  upstream?: string
  /** The account the client expects. */
  loginHint?: string
  /** The user who is already signed in. */
  accountId?: string
  /** What they have proved, if only more of it is asked for. */
  stepUp?: Progress
  /** How the session of the browser goes on, if another provider still knows the person. */
  renewal?: Renewal
  /** The strength that the client asks for. */
  acr?: Acr
  /** What the client asks of the time of the sign-in (lib/sign-in/freshness.ts): the time since when a proof is enough, and `max_age`. */
  freshness?: { since: string, maxAge: number }
  /** The requested scopes, with their meaning if one is declared. */
  scopes: PageScope[]
  /** For a device: the code that it shows, and the address that its request came from. */
  device?: { code: string, ip?: string }
  /** Where the browser goes on if the code of the device was used, refused or has expired meanwhile: the page there says so. */
  over?: string
}

/** A user who has passed the steps of a sign-in. */
export interface Login {
  accountId: string
  user_epoch: number
  /** Absent: the password, now. */
  proofs?: Proof[]
}

/** The user's decision. */
export type Decision =
  /** Who signs in answers prompt=create and prompt=select_account too. */
  | { login: Login }
  | { consent: { document?: string } }
  /** The person goes on with the account that is signed in. */
  | { select_account: Record<string, never> }
  /** The person has read that they used a recovery code. They go on with what the session of their browser says by now. */
  | { code_used: { login: Login, session: string } }
  /** The session goes on as it is. */
  | { renewed: Record<string, never> }
  | { error: 'access_denied' | 'unmet_authentication_requirements', error_description: string }

/** A browser with a signed-in user. */
export interface BrowserSession {
  uid: string
  user_id: string
  /** The user's epoch at the sign-in. */
  user_epoch: number
  /** The time of the last sign-in with a password: ISO 8601. */
  signed_in_at: string
  /** What the user has proved in it. */
  proofs: Proof[]
  /** A secret of this browser, for its forms. */
  xsrf: string
}

/** The sign-in sessions of browsers, which the service's own pages and all apps share. `address` is the client's. */
export interface BrowserSessions {
  /** The signed-in user of this browser. Null when there is none. */
  find (request: IncomingMessage, response: ServerResponse, address: string): Promise<BrowserSession | null>
  /** Signs a user in, and signs out another user who was signed in before. */
  signIn (request: IncomingMessage, response: ServerResponse, address: string, login: Login): Promise<void>
  /** Signs the user out of this browser, and of the apps that they signed in to from it. */
  signOut (request: IncomingMessage, response: ServerResponse, address: string): Promise<void>
}

/** oidc-provider over our store. */
export interface AuthorizationServer {
  readonly issuer: URL
  readonly browsers: BrowserSessions
  readonly signLogout: SignLogout
  /** Answers a request at one of the OAuth endpoints. */
  handle (request: IncomingMessage, response: ServerResponse, address: string): Promise<void>
  /** The pending interaction that the browser's cookie names. Throws when there is none. */
  findInteraction (request: IncomingMessage, response: ServerResponse): Promise<Interaction>
  /** The way back to an app. */
  findWay (client_id: string): Promise<PageWay | undefined>
  /** Lets an interaction go on after the end of the session in which it began, as a new password of its user ends it. */
  detach (uid: string): Promise<void>
  /** Records the decision. Resolves to the URL to redirect to. */
  decide (request: IncomingMessage, response: ServerResponse, decision: Decision): Promise<string>
}

/** A redirect URI that the client has not registered, for the log: without its query and fragment. */
export interface RefusedUri { client_id: string, redirect_uri: string }
