import { BlockList, isIP } from 'node:net'
import { ConfigError, type Config } from '../../config.ts'

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8)
LOOPBACK.addAddress('::1', 'ipv6')

function isLoopback (host: string): boolean {
  const version = isIP(host)
  return version === 0 ? host === 'localhost' : LOOPBACK.check(host, version === 6 ? 'ipv6' : 'ipv4')
}

/**
 * Refuses a production service that is reachable over the network without TLS: passwords, tokens and cookies would be readable.
 * @throws ConfigError that names the variable
 */
export function checkExposure ({ host, oidc, services }: Pick<Config, 'host' | 'oidc'> & { services: Pick<Config['services'], 'production'> }): void {
  if (!services.production || oidc === false || isLoopback(host) || oidc.issuer?.startsWith('https:') === true) return
  throw new ConfigError([
    'IDENTITY_ISSUER: must be the https URL of the service in production, because HOST is not a loopback address; a proxy with TLS in front of the service is enough'
  ])
}
