import { toTimestamp } from '../clock.ts'
import type { UserRecord } from '../records.ts'
import type { Store } from '../store/port.ts'
import { isActive } from '../tokens/validity.ts'

/** A user in oidc-provider's terms. */
export interface Account {
  accountId: string
  claims (use: string, scope: string): Record<string, unknown> & { sub: string }
  /** Required by oidc-provider's types. */
  [key: string]: unknown
}

/** The claims of all scopes (OpenID Connect Core, 5.1). oidc-provider removes those that were not granted. */
function toClaims (user: UserRecord): Record<string, unknown> & { sub: string } {
  const isEmail = user.account.includes('@')
  return {
    sub: user.id,
    preferred_username: user.account,
    ...(user.name !== '' && { name: user.name }),
    ...(isEmail && { email: user.account, email_verified: user.verified_at !== undefined }),
    roles: user.roles
  }
}

/** Finds users for oidc-provider; a disabled or expired user is not found. */
export function createAccounts (store: Store, now: () => number) {
  const users = store.collection<UserRecord>('users')
  return async function findAccount (user_id: string): Promise<Account | undefined> {
    const user = await users.get(user_id)
    if (user === null || !isActive(user, toTimestamp(now()))) return undefined
    return { accountId: user.id, claims: () => toClaims(user) }
  }
}
