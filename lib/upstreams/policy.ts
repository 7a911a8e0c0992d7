import type { Upstream } from '../../schemas/upstream.ts'
import { findDomain } from '../records.ts'
import { holdsRole } from '../roles.ts'
import type { WayPolicy } from '../ways/words.ts'
import { hasIssuer } from './kinds.ts'

/** Whether people may sign in with an upstream: to this client, or without one to the pages of the account. */
export const allows = ({ clients }: Pick<Upstream, 'clients'>, client_id?: string): boolean => client_id === undefined || clients === undefined || clients.includes(client_id)

/**
 * Whether an identity there may join an account whose owner has proved by a link, or in a session, that it is theirs.
 * @param only the upstream by which alone they sign in
 */
export const mayJoin = ({ id, link }: Pick<Upstream, 'id' | 'link'>, only?: string): boolean => link !== 'never' && (only === undefined || only === id)

/** A claim of a sign-in, as `factors` of the upstream names it. */
export const nameFactor = (claim: 'acr' | 'amr', value: string): string => `${claim} ${value}`

/** Whether `factors` of an upstream has a claim. */
const isTrusted = ({ factors = {} }: Pick<Upstream, 'factors'> = {}, factor: string): boolean => (
  (['acr', 'amr'] as const).some((claim) => factors[claim]?.some((value) => nameFactor(claim, value) === factor) === true))

/**
 * What the configuration says of the ways of people.
 * @param adminRole the name of the role of administrators, whom no upstream locks out
 */
export function createUpstreamPolicy (upstreams: readonly Upstream[] = [], adminRole: string): Pick<WayPolicy, 'allowsUpstream' | 'trustsFactor' | 'findOnly' | 'findUpstream'> {
  const byId = new Map(upstreams.map((upstream) => [upstream.id, upstream]))
  const byDomain = new Map(upstreams.flatMap(({ id, only, domains = [] }) => only === true ? domains.map((domain) => [domain, id] as const) : []))
  return {
    allowsUpstream (upstream, client_id) {
      const found = byId.get(upstream ?? '')
      return found !== undefined && allows(found, client_id)
    },

    trustsFactor: (upstream, factor) => factor !== undefined && isTrusted(byId.get(upstream ?? ''), factor),

    findUpstream: (issuer) => upstreams.find((upstream) => hasIssuer(upstream, issuer))?.id,

    findOnly ({ email, email_verified_at, roles }) {
      if (byDomain.size === 0 || email === undefined || email_verified_at === undefined || holdsRole(roles, adminRole)) return undefined
      return byDomain.get(findDomain(email))
    }
  }
}
