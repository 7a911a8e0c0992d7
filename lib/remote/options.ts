import { RemoteOptionsSchema, type RemoteSettings } from '../../schemas/remote.ts'
import { parseUpstream } from '../bridge/upstream.ts'
import { createOptionsReader } from '../options.ts'
import { checkRoleNames } from '../roles.ts'
import type { ServiceLocation } from './place.ts'

const readData = createOptionsReader(RemoteOptionsSchema)

/** Settings of a plugin that knows whom to ask. */
export type RemoteConfig = Omit<RemoteSettings, 'upstream' | 'issuer'> & { place: ServiceLocation }

/**
 * Checks options and fills in the defaults, in a copy.
 * @throws Error that names the option
 */
export function readRemoteOptions (given: object): RemoteConfig {
  const { upstream, issuer, ...rest } = readData(given)
  checkRoleNames(rest.roles)
  if (upstream !== undefined && issuer !== undefined) throw new Error('option issuer: goes without upstream')
  if (upstream !== undefined) return { ...rest, place: { upstream: parseUpstream(upstream) } }
  if (issuer !== undefined) return { ...rest, place: { issuer, at: parseUpstream(issuer, 'issuer') } }
  throw new Error('option upstream: is required, or issuer')
}
