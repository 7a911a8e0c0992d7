import { Ajv } from 'ajv'
import { RemoteOptionsSchema, type RemoteSettings } from '../../schemas/remote.ts'
import { parseUpstream } from '../bridge-options.ts'
import type { Place } from './place.ts'

const validate = new Ajv({ useDefaults: true, strict: true, strictTypes: false }).compile<RemoteSettings>(RemoteOptionsSchema)

/** Settings of a plugin that knows whom to ask. */
export type RemoteConfig = Omit<RemoteSettings, 'upstream' | 'issuer'> & { place: Place }

/**
 * Checks options and fills in the defaults, in a copy.
 * @throws Error that names the option
 */
export function readRemoteOptions (given: object): RemoteConfig {
  const data: object = structuredClone(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)))
  if (!validate(data)) {
    const [error] = validate.errors ?? []
    const option = [...(error?.instancePath.slice(1).split('/') ?? []), error?.params.additionalProperty]
    throw new Error(`option ${option.filter(Boolean).join('.') || '(all)'}: ${error?.message}`)
  }
  const { upstream, issuer, ...rest } = data
  if (upstream !== undefined && issuer !== undefined) throw new Error('option issuer: goes without upstream')
  if (upstream !== undefined) return { ...rest, place: { upstream: parseUpstream(upstream) } }
  if (issuer !== undefined) return { ...rest, place: { issuer, at: parseUpstream(issuer, 'issuer') } }
  throw new Error('option upstream: is required, or issuer')
}
