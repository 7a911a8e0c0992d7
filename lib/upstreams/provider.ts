import type { JSONWebKeySet } from 'jose'
import type { Enter } from './places.ts'

/** The claims of an ID token that was verified. Of a provider without ID tokens: what it says of the person, as claims. */
export type Claims = { readonly [claim: string]: unknown }

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
  /** With `isFresh`, seconds since when a sign-in there is enough. Absent: none is. A provider that is told says when it was. */
  maxAge?: number | undefined
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
  check (enter: Enter): Promise<void>
  /** The URL that the browser goes to. */
  toAuthorization (authorization: Authorization, enter: Enter): Promise<string>
  /** Redeems the code. @throws Error unless every check passes */
  redeem (callback: Callback, enter: Enter): Promise<Claims>
  /** The keys for logout tokens. Whoever needs a missing one shares the next fetch with all others. Absent: the kind sends none */
  readLogoutKeys?: ((kid: string | undefined, enter: Enter) => Promise<JSONWebKeySet>) | undefined
}
