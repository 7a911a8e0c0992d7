/**
 * Sign-in with other providers.
 * @module
 */
import type { Outbound } from '../outbound/fetcher.ts'
import { asksToSignIn } from './attempts.ts'
import { createFoundIdentities } from './found.ts'
import { type IdentityParts, createIdentities } from './identities.ts'
import { mayJoin } from './policy.ts'
import { checkServers } from './settings.ts'
import { type UpstreamParts, createUpstreams } from './upstreams.ts'

export type { Intent, LinkPlace, Place } from './attempts.ts'

/**
 * @throws Error that names an upstream whose server must not be called
 */
export function openUpstreams ({ outbound, ...parts }: Omit<UpstreamParts, 'outbound'> & IdentityParts & { outbound: Outbound }) {
  checkServers(parts.upstreams, outbound.checkUrl)
  const upstreams = createUpstreams({ ...parts, outbound })
  return {
    ...upstreams,
    asksToSignIn,
    /** The upstream by which alone somebody signs in. */
    findOnly: parts.findOnly,

    /** The upstreams whose identities may join the account of somebody who has proved that it is theirs: for this client, if one is given. */
    listJoining (holder: Parameters<IdentityParts['findOnly']>[0], client_id?: string) {
      return upstreams.list(client_id).filter(({ id }) => mayJoin(upstreams.require(id), parts.findOnly(holder)))
    },
    identities: createIdentities(parts),
    /** What browsers have proved in sign-ins that are not over. */
    found: createFoundIdentities(parts)
  }
}

export type UpstreamService = ReturnType<typeof openUpstreams>
