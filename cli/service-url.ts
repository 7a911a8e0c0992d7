import type { Config } from '../config.ts'
import type { Judged } from '../lib/status/capabilities.ts'
import { toWorkerAddress } from './process/metrics-ports.ts'

/** The URL of the service: its issuer, or without one the address that it listens on, on this machine. */
export function findServiceUrl ({ host, port, oidc }: Pick<Config, 'host' | 'port' | 'oidc'>): string {
  if (oidc !== false && oidc.issuer !== undefined) return oidc.issuer
  const address = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host
  return `http://${address}:${port}`
}

/** The addresses of the service, as what it can do is judged. */
export function toAddresses (config: Config): Pick<Judged, 'url' | 'metrics'> {
  const { metrics, workers } = config
  return { url: findServiceUrl(config), metrics: metrics === undefined ? undefined : { first: metrics, last: toWorkerAddress(metrics, workers - 1) } }
}
