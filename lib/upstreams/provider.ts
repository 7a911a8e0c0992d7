import type { JSONWebKeySet } from 'jose'
import type { Claims } from './claims.ts'

/** An authorization request. */
export interface Authorization {
  redirectUri: string
  state: string
  nonce: string
  /** The verifier of PKCE. */
  verifier: string
  /** The account that the person is expected to have there. */
  hint?: string | undefined
  /** Whether they have to prove who they are again. */
  isFresh: boolean
  /** Whether they are asked nothing: the provider answers whether it still knows them. */
  isSilent?: boolean | undefined
  /** Whether they are asked which account they mean: somebody has signed out in this browser. */
  asksAccount?: boolean | undefined
}

/** The answer to it, as it came to our redirect URI. */
export interface Callback extends Pick<Authorization, 'state' | 'nonce' | 'verifier'> {
  /** The redirect URI with the parameters of the answer. */
  url: URL
}

/** How a kind of provider signs people in. The tokens that it hands out are used at once, and never kept. */
export interface Provider {
  /** Reads what the provider says of itself. @throws Error with the reason why it cannot be used */
  check (signal: AbortSignal): Promise<void>
  /** The URL that the browser goes to. */
  toAuthorization (authorization: Authorization, signal: AbortSignal): Promise<string>
  /** Redeems the code. @throws Error unless every check passes */
  redeem (callback: Callback, signal: AbortSignal): Promise<Claims>
  /** The keys for logout tokens. Unknown ones are fetched once a minute at most. Absent: the kind sends none */
  readLogoutKeys? (kid: string | undefined, signal: AbortSignal): Promise<JSONWebKeySet>
}
