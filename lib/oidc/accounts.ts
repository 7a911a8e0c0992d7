import { toTimestamp } from '../clock.ts'
import type { UserRecord } from '../records.ts'
import type { Store } from '../store/port.ts'
import { isActive } from '../tokens/validity.ts'

/** A user as oidc-provider wants one. */
export interface Account {
  accountId: string
  claims (use: string, scope: string): Record<string, unknown> & { sub: string }
  /** oidc-provider's types want room for more. */
  [key: string]: unknown
}

/** All that any scope may tell of a user (OpenID Connect Core, 5.1); oidc-provider takes out what was not asked for. */
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

/** Finds users for oidc-provider: those who may act now. */
export function createAccounts (store: Store, now: () => number) {
  const users = store.collection<UserRecord>('users')
  return async function findAccount (user_id: string): Promise<Account | undefined> {
    const user = await users.get(user_id)
    if (user === null || !isActive(user, toTimestamp(now()))) return undefined
    return { accountId: user.id, claims: () => toClaims(user) }
  }
}
