/**
 * Sign-in with other providers.
 * @module
 */
import type { Outbound } from '../outbound/fetcher.ts'
import { createUpstreamEnds } from './ends.ts'
import { createFoundIdentities } from './found.ts'
import { type IdentityParts, createIdentities } from './identities.ts'
import { asksToSignIn } from './intent.ts'
import { type UpstreamLogoutParts, createUpstreamLogouts } from './logouts.ts'
import { mayJoin } from './policy.ts'
import { createRoleChanges } from './role-changes.ts'
import { checkServers } from './settings.ts'
import { createIdentityStanding } from './standing.ts'
import { type UpstreamParts, createUpstreams } from './upstreams.ts'

export type { Intent, ReturnToLink, ReturnTo, ReturnToSignIn } from './intent.ts'
export type { Renewal } from './standing.ts'

type OpenParts = Omit<UpstreamParts, 'outbound'> & IdentityParts & Omit<UpstreamLogoutParts, 'verifyLogout' | 'ends'> & {
  outbound: Outbound
  policy: Parameters<typeof createIdentityStanding>[0]['policy']
}

/**
 * @throws Error that names an upstream whose server must not be called
 */
export function openUpstreams ({ outbound, ...given }: OpenParts) {
  const ends = createUpstreamEnds(given)
  const standing = createIdentityStanding({ ...given, ends })
  const parts = { ...given, ends, standing }
  checkServers(parts.upstreams, outbound.checkUrl)
  const upstreams = createUpstreams({ ...parts, outbound })
  const { verifyLogout, ...service } = upstreams
  const roleChanges = parts.upstreams.some(({ roles }) => roles !== undefined) ? createRoleChanges(parts) : undefined
  return {
    ...service,
    asksToSignIn,
    /** How a session is renewed whose provider has said nothing of its person for too long. */
    findRenewal: standing.findRenewal,
    /** Whether what was proved with identities stands: their providers may have ended it. */
    standing,
    /** What other providers say about the end of sign-ins. */
    logouts: createUpstreamLogouts({ ...parts, verifyLogout }),
    /** The upstream by which alone somebody signs in. */
    findOnly: parts.findOnly,

    /** The upstreams whose identities may join the account of somebody who has proved that it is theirs: for this client, if one is given. */
    listJoining (holder: Parameters<IdentityParts['findOnly']>[0], client_id?: string) {
      return upstreams.list(client_id).filter(({ id }) => mayJoin(upstreams.require(id), parts.findOnly(holder)))
    },
    identities: createIdentities({ ...parts, roleChanges }),
    /** What gives and takes roles by the maps of upstreams. Absent: no upstream has one. */
    roleChanges,
    /** What browsers have proved in sign-ins that are not over. */
    found: createFoundIdentities(parts)
  }
}

export type UpstreamService = ReturnType<typeof openUpstreams>
