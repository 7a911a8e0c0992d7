import { once } from 'node:events'
import { createServer } from 'node:net'
import { ConfigError, type Config } from '../../config.ts'
import { readCode } from '../../lib/failure.ts'

/** Reasons for a failure to listen, in terms of the variables. */
const REASONS: Record<string, (config: Pick<Config, 'host' | 'port'>) => string> = {
  EADDRINUSE: ({ host, port }) => `PORT: address already in use: ${host}:${port}`,
  EACCES: ({ port }) => `PORT: this user may not listen on ${port}`,
  EADDRNOTAVAIL: () => 'HOST: is not an address of this machine',
  ENOTFOUND: () => 'HOST: is not a known name',
  EAI_AGAIN: () => 'HOST: the name cannot be looked up now'
}

/** Converts a failure to listen into a ConfigError that names the variable; returns any other error unchanged. */
export function explainListenError (error: unknown, config: Pick<Config, 'host' | 'port'>): unknown {
  const reason = REASONS[readCode(error) ?? '']
  return reason === undefined ? error : new ConfigError([reason(config)])
}

/**
 * Listens and closes again, before the start creates anything: a start that cannot listen leaves no database and no key behind.
 * @throws ConfigError that names the variable
 */
export async function checkListener (config: Pick<Config, 'host' | 'port'>): Promise<void> {
  const server = createServer()
  try {
    await once(server.listen({ host: config.host, port: config.port }), 'listening')
  } catch (error) {
    throw explainListenError(error, config)
  }
  await new Promise((resolve) => server.close(resolve))
}
