import type { Upstream, UpstreamKind } from '../../schemas/upstream.ts'
import { toIssuer } from '../issuer.ts'

/** The public providers: the origin of their servers, and their name on pages. */
const PUBLIC: Readonly<Record<Exclude<UpstreamKind, 'oidc'>, { origin: string, name: string }>> = {
  google: { origin: 'https://accounts.google.com', name: 'Google' },
  microsoft: { origin: 'https://login.microsoftonline.com', name: 'Microsoft' },
  github: { origin: 'https://github.com', name: 'GitHub' },
  apple: { origin: 'https://appleid.apple.com', name: 'Apple' }
}

/** The server of an upstream, without a slash at its end. Of Microsoft and GitHub it is an origin. */
export function findServer ({ kind, issuer }: Pick<Upstream, 'kind' | 'issuer'>): string {
  return (issuer ?? (kind === 'oidc' ? '' : PUBLIC[kind].origin)).replace(/\/$/, '')
}

/** The name of an upstream on pages. */
export function nameUpstream (upstream: Pick<Upstream, 'kind' | 'issuer' | 'name'>): string {
  const { kind, name } = upstream
  return name ?? (kind === 'oidc' ? new URL(findServer(upstream)).hostname : PUBLIC[kind].name)
}

/** The tenant in the URLs of Microsoft's servers. */
function findTenant ({ tenants = [] }: Pick<Upstream, 'tenants'>): string {
  const [tenant = 'common'] = tenants
  return tenants.length > 1 ? 'organizations' : tenant === 'all' ? 'common' : tenant
}

/** The only tenant of Microsoft that an upstream allows; undefined without one. */
export const findOnlyTenant = ({ tenants = [] }: Pick<Upstream, 'tenants'>): string | undefined =>
  tenants.length === 1 && tenants[0] !== 'all' ? tenants[0] : undefined

/** The URL of the issuer, below which its metadata are. */
export function findIssuer (upstream: Pick<Upstream, 'kind' | 'issuer' | 'tenants'>): string {
  const server = findServer(upstream)
  if (upstream.kind === 'microsoft') return `${server}/${findTenant(upstream)}/v2.0`
  return upstream.kind === 'oidc' ? upstream.issuer ?? server : server
}

/** Whether the identities of an upstream have this issuer. At Microsoft each tenant has its own. */
export function hasIssuer (upstream: Pick<Upstream, 'kind' | 'issuer' | 'tenants'>, issuer: string): boolean {
  return upstream.kind === 'microsoft' ? issuer.startsWith(`${findServer(upstream)}/`) : issuer === findIssuer(upstream)
}

/** Whether a provider may send logout tokens. Of the others none does, or only by the browser. */
export const sendsLogouts = ({ kind }: Pick<Upstream, 'kind'>): boolean => kind === 'oidc'

/** Whether a provider can be asked without a page whether it still knows a person (OpenID Connect Core, 3.1.2.1: `prompt=none`). */
export const answersSilently = ({ kind }: Pick<Upstream, 'kind'>): boolean => kind !== 'apple' && kind !== 'github'

/** The redirect URI of an upstream. */
export const toRedirectUri = (issuer: URL, id: string): string => `${toIssuer(issuer)}/api/v1/auth/upstream/${id}/callback`

/**
 * The URL to register with a provider for its logout tokens; undefined for one that sends none.
 * @param issuer of this service. Absent: it is the address that it listens on, and the path is all that is known
 */
export function toLogoutUri (upstream: Pick<Upstream, 'kind' | 'id'>, issuer = ''): string | undefined {
  return sendsLogouts(upstream) ? `${issuer}/api/v1/auth/upstream/${upstream.id}/backchannel-logout` : undefined
}

/** The scopes that an authorization asks for. */
export function findScope ({ kind, emails }: Pick<Upstream, 'kind' | 'emails'>): string {
  if (kind === 'github') return 'read:user user:email'
  if (kind === 'apple') return 'openid name email'
  return kind === 'oidc' && emails !== 'verified' ? 'openid profile' : 'openid profile email'
}
