/**
 * What a person reads when the service starts outside production: the first call to make.
 * @module
 */
import { fstatSync } from 'node:fs'
import { IdentityError } from '../lib/errors.ts'
import { type Services } from '../lib/identity.ts'

const OPERATOR = { user_id: '', isAdmin: true }

/** How the command line is called from here: in a checkout, or where the package is installed. */
export const CALL = import.meta.url.endsWith('.ts') ? 'npm run -s cli --' : 'npx fastify-identity'

/**
 * Where text for a person goes, which may hold secrets: the terminal, whichever stream leads there. Without one, as
 * under CI, stdout, unless that is a file, which would be a log: then stderr. It never passes through the logger.
 */
export function chooseTerminal (): NodeJS.WriteStream {
  if (process.stdout.isTTY) return process.stdout
  if (process.stderr.isTTY) return process.stderr
  return fstatSync(process.stdout.fd).isFile() ? process.stderr : process.stdout
}

/** Makes the first admin on an empty embedded store; null when there is nothing to make, or another process just did. */
async function makeFirst (services: Services) {
  if (services.store.engine !== 'sqlite' || await services.users.count() > 0) return null
  try {
    return await services.bootstrap()
  } catch (error) {
    if (error instanceof IdentityError && error.code === 'ErrPerm') return null
    throw error
  }
}

/** How to get a token for the oldest client; its ids are no secrets. */
async function tellTokenCommand ({ users, clients }: Services): Promise<string> {
  for await (const [client] of clients.list({ sort: 'created:asc', limit: 1 }, OPERATOR)) {
    const owner = await users.get(client?.userId ?? '')
    if (client !== undefined && owner !== null) return `${CALL} token create --account ${owner.account} --client ${client.clientId}`
  }
  return await users.count() === 0 ? `${CALL} bootstrap` : `${CALL} help`
}

/**
 * Makes the first admin where there is none, and tells how to call the service. In production it does neither.
 * @param url where it listens
 * @returns a text for the terminal, with secrets in it; empty in production
 */
export async function welcome (services: Services, { url, production }: { url: string, production: boolean }): Promise<string> {
  if (production) return ''
  const call = (token: string) => `  curl -H 'Authorization: Bearer ${token}' ${url}/api/v1/auth/tokeninfo`
  const first = await makeFirst(services)
  if (first === null) {
    return ['', `Ready at ${url}. An access token for a call is made by:`, '', `  ${await tellTokenCommand(services)}`, '', ''].join('\n')
  }
  return [
    '',
    `Ready at ${url}. The database was empty, so a first admin was made. This is shown once:`,
    '',
    `  account   ${first.account}`,
    `  password  ${first.password}`,
    `  client    ${first.client_id}`,
    `  token     ${first.access_token}`,
    '',
    'The first call:',
    '',
    call(first.access_token),
    '',
    ''
  ].join('\n')
}
