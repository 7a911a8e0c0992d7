/**
 * Sign-in with other providers.
 * @module
 */
import type { Outbound } from '../outbound/fetcher.ts'
import { createFoundIdentities } from './found.ts'
import { type IdentityParts, createIdentities } from './identities.ts'
import { checkServers } from './settings.ts'
import { type UpstreamParts, createUpstreams } from './upstreams.ts'

export type { Intent, Place } from './attempts.ts'

/**
 * @throws Error that names an upstream whose server must not be called
 */
export function openUpstreams ({ outbound, ...parts }: Omit<UpstreamParts, 'outbound'> & IdentityParts & { outbound: Outbound }) {
  checkServers(parts.upstreams, outbound.checkUrl)
  return {
    ...createUpstreams({ ...parts, outbound }),
    identities: createIdentities(parts),
    /** What browsers have proved in sign-ins that are not over. */
    found: createFoundIdentities(parts)
  }
}

export type UpstreamService = ReturnType<typeof openUpstreams>
