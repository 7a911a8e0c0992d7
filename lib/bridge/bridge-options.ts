import { BridgeOptionsSchema, type BridgeSettings } from '../../schemas/bridge.ts'
import { createOptionsReader } from '../options.ts'

const readData = createOptionsReader(BridgeOptionsSchema)

/** The upstream's origin, and the path below which its API lies, without a slash at the end. */
export interface Upstream {
  origin: string
  base: string
}

/**
 * Reads the base URL of an upstream.
 * @throws Error that names the option and, since the URL may hold a password, never repeats it
 */
export function parseUpstream (text: string, option = 'upstream'): Upstream {
  if (!URL.canParse(text)) throw new Error(`option ${option}: must be an absolute URL`)
  const url = new URL(text)
  if (!/^https?:$/.test(url.protocol)) throw new Error(`option ${option}: must be an http or https URL`)
  if (url.username !== '' || url.password !== '') throw new Error(`option ${option}: must not hold credentials`)
  if (url.search !== '' || url.hash !== '') throw new Error(`option ${option}: must not have a query or a fragment`)
  return { origin: url.origin, base: url.pathname.replace(/\/+$/, '') }
}

/**
 * Checks options and fills in the defaults, in a copy.
 * @throws Error that names the option
 */
export function readBridgeOptions (given: object): Omit<BridgeSettings, 'upstream'> & { upstream: Upstream } {
  const data = readData(given)
  return { ...data, upstream: parseUpstream(data.upstream) }
}
