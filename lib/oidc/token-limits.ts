import type { KoaContextWithOIDC, errors as OidcErrors } from 'oidc-provider'
import type { Count, Counter } from '../throttling/counter.ts'
import type { TokenLimitSettings } from './contract.ts'
import { toProviderError, tooMany } from './oauth-error.ts'

const MINUTE = 60_000

/** Refresh tokens that are redeemed per minute and grant. An app needs one an hour. A grant has one code, which is used once. */
export const PER_GRANT = 60

/** Limits requests of the token endpoint. The limits are counted before anything is written or spent. */
export function createTokenLimits ({ clientTokens = false, grantTokens = false }: TokenLimitSettings, { counter, errors, getContext }: {
  counter: Counter, errors: typeof OidcErrors, getContext: () => KoaContextWithOIDC | undefined
}) {
  function check ({ current, ttl }: Count, most: number): void {
    if (current > most) throw toProviderError(tooMany('too many tokens were requested', ttl), errors, getContext())
  }

  return {
    /** Counts a token of a client that acts for itself. @throws 429 temporarily_unavailable */
    async countClient (owner: string): Promise<void> {
      if (clientTokens !== false) check(await counter.count('client-token', owner, MINUTE), clientTokens)
    },

    /** Counts a refresh token. @throws 429 temporarily_unavailable */
    async countGrant (grant_id: string): Promise<void> {
      if (grantTokens !== false) check(await counter.count('grant-token', grant_id, MINUTE), grantTokens)
    }
  }
}

export type TokenLimits = ReturnType<typeof createTokenLimits>
