import type { Attention } from '../../schemas/status.ts'
import type { Upstream } from '../../schemas/upstream.ts'
import type { UserRecord } from '../records/user.ts'
import type { RoleNames } from '../roles.ts'
import { isAuthority } from './authority.ts'
import { judgeEarlier } from './earlier-addresses.ts'
import { createUpstreamPolicy } from './policy.ts'

/** People whom upstreams with `only` claim, and whom an operator should know of. */
export interface HeldCount {
  /** Claimed without a proved address in the domains: their passwords and passkeys sign them in no more. */
  unproved: number
  /** Claimed by their name or a mark only, without an identity there: none joins, because their address is another one. */
  unreachable: number
  /** Whom an undo took an identity from in an earlier release: none joins by itself, because nobody knows which one it was. */
  undone: number
}

/** Counts these people: of a database of an earlier release as if its addresses were judged already. */
export async function countHeld (batches: AsyncIterable<UserRecord[]>, upstreams: readonly Upstream[], roles: RoleNames): Promise<HeldCount> {
  const { findOnly } = createUpstreamPolicy(upstreams, roles)
  const isAuthorityId = (id: string): boolean => upstreams.some((upstream) => upstream.id === id && isAuthority(upstream))
  const count: HeldCount = { unproved: 0, unreachable: 0, undone: 0 }
  for await (const batch of batches) {
    for (const user of batch) {
      const { account, email, email_verified_at, roles: held, ways = {}, lost_identities: lost = [] } = user
      const only = findOnly(user)
      if (only === undefined) continue
      const isOfAddress = findOnly({ account: email ?? account, roles: held }) === only
      const isLinked = Object.values(ways).some(({ upstream }) => upstream === only)
      const isProved = email !== undefined && email_verified_at !== undefined && judgeEarlier(user, user, isAuthorityId) !== false
      if (!isOfAddress || !isProved) count.unproved++
      if (!isOfAddress && !isLinked) count.unreachable++
      if (user.link_undone === true && !isLinked && !lost.some(({ undone }) => undone === true)) count.undone++
    }
  }
  return count
}

const TEXTS = {
  unproved: 'without a proved address in its domains, who sign in with the provider alone',
  unreachable: 'with another address, whose account no identity joins until you set their address',
  undone: 'who have disconnected an identity that they had not linked, so that none joins by itself (see user identities replace)'
}

/** Each count that is not 0, with a sentence. */
export function describeHeld (held: HeldCount): Pick<Attention, 'code' | 'text' | 'count'>[] {
  return (['unproved', 'unreachable', 'undone'] as const)
    .filter((name) => held[name] > 0)
    .map((name) => ({ code: `people_${name}` as const, text: `only: people ${TEXTS[name]}: ${held[name]}`, count: held[name] }))
}
