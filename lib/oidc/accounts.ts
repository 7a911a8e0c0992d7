import { toTimestamp } from '../clock.ts'
import { readClaims } from '../custom-claims.ts'
import { defined } from '../defined.ts'
import { type UserRecord, findMailbox, isActive } from '../records/user.ts'
import type { Store } from '../store/port.ts'
import { readShared } from '../store/shared.ts'
import { CUSTOM, type OurClient } from './context.ts'

/** A user in oidc-provider's terms. */
interface Account {
  accountId: string
  /** The account as the user types it to sign in. */
  name: string
  claims (use: string, scope: string): Record<string, unknown> & { sub: string, [CUSTOM]?: object }
  /** Required by oidc-provider's types. */
  [key: string]: unknown
}

/**
 * The claims of all scopes (OpenID Connect Core, 5.1). oidc-provider removes those that were not granted. `email_verified` is
 * false unless the address was proved: by our mail, or by the word of an operator or of an authority (lib/user-changes/address-proof.ts). Without the
 * claim, some apps would treat the address as verified.
 */
export function toClaims (user: UserRecord): Record<string, unknown> & { sub: string } {
  const email = findMailbox(user)
  return defined({
    sub: user.id,
    preferred_username: user.account,
    name: user.name !== '' ? user.name : undefined,
    ...(email !== undefined && { email, email_verified: user.email_verified_at !== undefined }),
    roles: Object.keys(user.roles)
  })
}

/** What decides about the claims for a client. */
type ClaimsClient = Pick<OurClient, 'id_token_claims' | 'custom_claims'>

/**
 * Finds users for oidc-provider; a disabled or expired user is not found.
 * @param client the client that the claims are for, if known. Its ID tokens have the claims of the scopes only if
 *   `id_token_claims` is set; userinfo always has them (OpenID Connect Core, 5.4). Both have the operator's own, which belong to no scope
 * @param known the user, where the request has read them
 */
export function createAccounts (store: Store, now: () => number) {
  const users = store.collection<UserRecord>('users')
  return async function findAccount (user_id: string, client?: ClaimsClient, known?: UserRecord | null): Promise<Account | undefined> {
    const user = known?.id === user_id ? known : await readShared(users, user_id)
    if (user === null || !isActive(user, toTimestamp(now()))) return undefined
    return {
      accountId: user.id,
      name: user.account,
      claims: (use) => ({
        ...(use === 'id_token' && client?.id_token_claims !== true ? { sub: user.id } : toClaims(user)),
        [CUSTOM]: readClaims(use === 'id_token' ? use : 'userinfo', [client?.custom_claims], user)
      })
    }
  }
}
