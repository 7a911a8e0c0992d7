import type { Upstream } from '../../schemas/upstream.ts'
import { type UserRecord, findDomain, isAddress } from '../records/user.ts'
import { type RoleNames, holdsRole } from '../roles.ts'
import type { WayPolicy } from '../ways/words.ts'
import { hasIssuer } from './kinds.ts'

/** Whether people may sign in with an upstream: to this client, or without one to the pages of the account. */
export const allows = ({ clients }: Pick<Upstream, 'clients'>, client_id?: string): boolean =>
  client_id === undefined || clients === undefined || clients.includes(client_id)

/**
 * Whether an identity there may join an account whose owner has proved by a link, or in a session, that it is theirs.
 * @param only the upstream by which alone they sign in
 */
export const mayJoin = ({ id, link }: Pick<Upstream, 'id' | 'link'>, only?: string): boolean => link !== 'never' && (only === undefined || only === id)

/** Milliseconds for which a change of all subjects may be declared, and within which an account takes part in one once. */
export const LONGEST_REJOIN = 30 * 24 * 60 * 60_000

/** Whether the operator has declared that all subjects of this upstream change now. */
export const isRejoinOn = ({ rejoin }: Pick<Upstream, 'rejoin'>, now: number): boolean => rejoin !== undefined && Date.parse(rejoin.until) > now

/**
 * Whether a provider's proved address is that of the account: its address or, where it has none at all, its name. The name of an account
 * with another address may be a colleague's address by now. Being claimed (`findOnly`) takes less: a restriction needs no proof.
 */
export const isAddressOf = ({ account, email }: Pick<UserRecord, 'account' | 'email'>, proved: string): boolean => (email ?? account) === proved

/** The roles that the map of an upstream names, which it owns. */
export const listOwned = ({ roles }: Pick<Upstream, 'roles'>): string[] => [...new Set(Object.values(roles?.map ?? {}).flat())]

/** A claim of a sign-in, as `factors` of the upstream names it. */
export const nameFactor = (claim: 'acr' | 'amr', value: string): string => `${claim} ${value}`

/** Whether `factors` of an upstream has a claim. */
const isTrusted = ({ factors = {} }: Pick<Upstream, 'factors'> = {}, factor: string): boolean => (
  (['acr', 'amr'] as const).some((claim) => factors[claim]?.some((value) => nameFactor(claim, value) === factor) === true))

/**
 * What the configuration says of the ways of people.
 * @param roles no upstream locks out administrators, nor services, which sign in nowhere
 */
export function createUpstreamPolicy (
  upstreams: readonly Upstream[] = [], roles: Pick<RoleNames, 'admin' | 'service'>
): Pick<WayPolicy, 'allowsUpstream' | 'restricts' | 'trustsFactor' | 'findOnly' | 'findUpstream'> {
  const byId = new Map(upstreams.map((upstream) => [upstream.id, upstream]))
  const claiming = upstreams.filter(({ only }) => only === true)
  const byDomain = new Map(claiming.flatMap(({ id, domains = [] }) => domains.map((domain) => [domain, id] as const)))
  return {
    allowsUpstream (upstream, client_id) {
      const found = byId.get(upstream ?? '')
      return found !== undefined && allows(found, client_id)
    },

    restricts (upstream) {
      const concerned = upstream === undefined ? upstreams : [byId.get(upstream)]
      return concerned.some((one) => one === undefined || one.clients !== undefined)
    },

    trustsFactor: (upstream, factor) => factor !== undefined && isTrusted(byId.get(upstream ?? ''), factor),

    findUpstream: (issuer) => upstreams.find((upstream) => hasIssuer(upstream, issuer))?.id,

    findOnly ({ account, email, roles: held, held_by, claimed_roles = {} }) {
      // Who administers by the word of an upstream stays under it: otherwise whoever it makes an administrator leaves it.
      const isExcepted = holdsRole(held, roles.admin) && !Object.values(claimed_roles).some((answer) => answer.roles.includes(roles.admin))
      if (byDomain.size === 0 || isExcepted || holdsRole(held, roles.service)) return undefined
      if (byId.get(held_by ?? '')?.only === true) return held_by
      // An address that nobody has proved claims too, and so does a name.
      const addresses = [email, account].filter((one) => one !== undefined).filter(isAddress)
      return addresses.map((address) => byDomain.get(findDomain(address))).find((id) => id !== undefined)
    }
  }
}
