import { fileURLToPath } from 'node:url'
import { SECRET_KEY } from './seed.ts'
import { readStartFlags } from './start.ts'
import type { ServerSpec } from './types.ts'

/**
 * server.ts in a process of its own, with the options of `npm start`. Its log goes to /dev/null.
 * @param port absent: a free one, which the issuer does not name, so that nobody can sign in
 */
export function describeService (label: string, database: string, logLevel: 'info' | 'warn', port = 0): ServerSpec {
  return {
    label,
    file: '../../server.ts',
    flags: [...readStartFlags(), '--import', fileURLToPath(new URL('servers/attach.ts', import.meta.url))],
    env: {
      NODE_ENV: 'production', PORT: String(port), DATABASE_URL: database, IDENTITY_SECRET_KEY: SECRET_KEY, IDENTITY_ISSUER: `http://127.0.0.1${port === 0 ? '' : `:${port}`}`, LOG_LEVEL: logLevel
    },
    quiet: true
  }
}
