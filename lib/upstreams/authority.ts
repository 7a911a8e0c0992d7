import type { Upstream, UpstreamKind } from '../../schemas/upstream.ts'
import { isOfDomain } from '../records/user.ts'
import { findOnlyTenant } from './kinds.ts'
import type { Claims } from './provider.ts'

/**
 * What a provider's word about an address is. An `authority` decides who has the address now. Another provider has only `seen` at some time
 * that its user could read mail there: it keeps the address verified for years after somebody else got the mailbox.
 */
export type AddressWord = 'authority' | 'seen'

interface KindRule {
  /** Whether the kind is an authority on the addresses of accounts. Without it, an address never joins an account or binds one to the provider. */
  isAuthority: (upstream: Pick<Upstream, 'emails'>) => boolean
  /** Whether its people have addresses that it has only seen. */
  hasSeen: boolean
  /** Its word about an address; undefined: none. What is absent is no word, and a text is no truth: only Apple writes booleans as texts. */
  judge: (upstream: Upstream, claims: Claims, address: string) => AddressWord | undefined
}

/** Domains whose addresses Google itself hands out. */
const OF_GOOGLE = ['gmail.com', 'googlemail.com']

/** Addresses by which Apple forwards mail to its users. */
const OF_APPLE = ['privaterelay.appleid.com']

/** Addresses of GitHub that lead to no mailbox. */
const NOREPLY = '@users.noreply.github.com'

const when = (isTrue: boolean, word: AddressWord): AddressWord | undefined => isTrue ? word : undefined

const RULES: Readonly<Record<UpstreamKind, KindRule>> = {
  google: {
    isAuthority: () => true,
    hasSeen: false,
    // Google is authoritative for its own addresses, and for those of organizations whose mail it runs.
    judge: (_upstream, { email_verified: verified, hd }, address) => {
      const isHosted = typeof hd === 'string' && hd !== ''
      return when(verified === true && (isHosted || isOfDomain(address, OF_GOOGLE)), 'authority')
    }
  },
  microsoft: {
    isAuthority: () => true,
    hasSeen: false,
    // The claim `email` is whatever the administrator of any tenant has written. `xms_edov` says that the tenant owns its domain.
    judge: (upstream, { xms_edov: edov }, address) => {
      const isOfOnlyTenant = findOnlyTenant(upstream) !== undefined && isOfDomain(address, upstream.domains ?? [])
      return when(edov === true || edov === 1 || isOfOnlyTenant, 'authority')
    }
  },
  apple: {
    isAuthority: () => false,
    hasSeen: true,
    judge: (_upstream, { email_verified: verified }, address) => (
      when(verified === true || verified === 'true', isOfDomain(address, OF_APPLE) ? 'authority' : 'seen'))
  },
  github: {
    isAuthority: () => false,
    hasSeen: true,
    judge: (_upstream, { email_verified: verified }, address) => when(verified === true && !address.endsWith(NOREPLY), 'seen')
  },
  oidc: {
    // The operator promises that this server checks addresses, and takes them away from people who lose them.
    isAuthority: ({ emails }) => emails === 'verified',
    hasSeen: false,
    judge: ({ emails }, { email_verified: verified }) => when(emails === 'verified' && verified === true, 'authority')
  }
}

/** What the word of an upstream makes of an address in its claims; undefined: the address is nothing. */
export const judgeAddress = (upstream: Upstream, claims: Claims, address: string): AddressWord | undefined =>
  RULES[upstream.kind].judge(upstream, claims, address)

/** Whether an upstream is an authority on the addresses of accounts. */
export const isAuthority = (upstream: Pick<Upstream, 'kind' | 'emails'>): boolean => RULES[upstream.kind].isAuthority(upstream)

/** Whether an upstream says of any address that it is verified. */
export const saysAddresses = (upstream: Pick<Upstream, 'kind' | 'emails'>): boolean => isAuthority(upstream) || RULES[upstream.kind].hasSeen

/** A check whether an id is that of a configured upstream that is an authority on addresses. */
export function createAuthorityCheck (upstreams: readonly Upstream[]): (id: string) => boolean {
  return (id) => upstreams.some((upstream) => upstream.id === id && isAuthority(upstream))
}
