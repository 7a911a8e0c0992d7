/**
 * What a person reads when the service starts outside production: the first call to make.
 * @module
 */
import { fstatSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { IdentityError } from '../lib/errors.ts'
import type { Services } from '../lib/identity.ts'
import { writeSecretFile } from './secret-files.ts'

const OPERATOR = { user_id: '', isAdmin: true }

/** How the command line is called from here: in a checkout, or where the package is installed. */
export const CALL = import.meta.url.endsWith('.ts') ? 'npm run -s cli --' : 'npx fastify-identity'

/**
 * Where text for a person goes, which may hold secrets: the terminal, whichever stream leads there. Without one, as
 * under CI, the first of stdout and stderr that is no file, since a file would be a log; null when both are.
 * It never passes through the logger.
 */
export function chooseTerminal (): NodeJS.WriteStream | null {
  const streams = [process.stdout, process.stderr]
  return streams.find(({ isTTY }) => isTTY) ?? streams.find(({ fd }) => !fstatSync(fd).isFile()) ?? null
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

/** An argument as a shell takes it. */
function quote (text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

export interface WelcomeOptions {
  /** Where it listens. */
  url: string
  production: boolean
  /** A folder for the secrets, where the text itself goes to a log. */
  keepIn?: string | undefined
}

/**
 * Makes the first admin where there is none, and tells how to call the service. In production it does neither.
 * @returns a text for the terminal, with secrets in it unless they are kept in a folder; empty in production
 */
export async function welcome (services: Services, { url, production, keepIn }: WelcomeOptions): Promise<string> {
  if (production) return ''
  const call = (header: string) => ['The first call:', '', `  curl -H ${header} ${url}/api/v1/auth/tokeninfo`, '', '']
  const first = await makeFirst(services)
  if (first === null) {
    return ['', `Ready at ${url}. An access token for a call is made by:`, '', `  ${await tellTokenCommand(services)}`, '', ''].join('\n')
  }
  const made = `Ready at ${url}. The database was empty, so a first admin was made.`
  const secrets = [
    `  account   ${first.account}`,
    `  password  ${first.password}`,
    `  client    ${first.client_id}`,
    `  token     ${first.access_token}`,
    ''
  ]
  if (keepIn === undefined) {
    return ['', `${made} This is shown once:`, '', ...secrets, ...call(`'Authorization: Bearer ${first.access_token}'`)].join('\n')
  }
  const [file, token] = [resolve(join(keepIn, 'first-admin.txt')), resolve(join(keepIn, 'first-token'))]
  await writeSecretFile(file, secrets.join('\n'))
  await writeSecretFile(token, `${first.access_token}\n`)
  return ['', `${made} What he signs in with is not for a log, it is kept in ${file}`, '', ...call(`"Authorization: Bearer $(cat ${quote(token)})"`)].join('\n')
}
