import { ConfigError, type Config } from '../../config.ts'

const ALL = ['0.0.0.0', '::']

/** The host as it is written, and the port. */
function split (address: string): [host: string, port: number] {
  const end = address.lastIndexOf(':')
  return [address.slice(0, end), Number(address.slice(end + 1))]
}

/** Where a worker serves its metrics: each has a port of its own. A port of 0 stays one. */
export function toWorkerAddress (address: string, slot: number): string {
  const [host, port] = split(address)
  return `${host}:${port === 0 ? 0 : port + slot}`
}

/**
 * Checks that there are ports for the metrics of all workers, and that none of them is that of the service.
 * @throws ConfigError that names the variable
 */
export function checkMetricsPorts ({ metrics, workers, host, port }: Pick<Config, 'metrics' | 'workers' | 'host' | 'port'>): void {
  if (metrics === undefined) return
  const [own, first] = split(metrics)
  const last = first + workers - 1
  if (first !== 0 && last > 65_535) throw new ConfigError(['IDENTITY_METRICS: must leave a port up to 65535 for each worker'])
  const hosts = [own.replace(/^\[|\]$/g, ''), host]
  const isSameHost = hosts[0] === hosts[1] || hosts.some((one) => ALL.includes(one))
  if (isSameHost && first <= port && port <= last && port !== 0) {
    throw new ConfigError([`IDENTITY_METRICS: must have ${workers === 1 ? 'another port' : `ports (${first} to ${last}) other`} than PORT`])
  }
}
