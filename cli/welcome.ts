/**
 * The text that the service prints when it starts outside production: its URL and a first call.
 * @module
 */
import { fstatSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config } from '../config.ts'
import { DEFAULT_ACCOUNT_PATH } from '../lib/accounts/links.ts'
import { IdentityError } from '../lib/errors.ts'
import type { Services } from '../lib/identity.ts'
import { toFirstSecretsFile } from '../lib/sign-in/first-secrets.ts'
import { writeSecretFile } from './secret-files.ts'

const OPERATOR = { user_id: '', isAdmin: true }

/** How to call the command line: in a checkout, or from the installed package. */
export const CALL = import.meta.url.endsWith('.ts') ? 'npm run -s cli --' : 'npx --no fastify-identity'

/**
 * The stream for text that may contain secrets: the terminal, on stdout or stderr. Without a terminal, as in CI, the
 * first of the two that is not a file, since a file would be a log; null when both are files. Never the logger.
 */
export function chooseTerminal (): NodeJS.WriteStream | null {
  const streams = [process.stdout, process.stderr]
  return streams.find(({ isTTY }) => isTTY) ?? streams.find(({ fd }) => !fstatSync(fd).isFile()) ?? null
}

/** Creates the first admin in an empty SQLite store. Null if the store has users, or another process was faster. */
async function createFirstAdmin (services: Services) {
  if (services.store.engine !== 'sqlite' || await services.users.count() > 0) return null
  try {
    return await services.bootstrap()
  } catch (error) {
    if (error instanceof IdentityError && error.code === 'ErrPerm') return null
    throw error
  }
}

/** The command that mints a token for the oldest client. It contains no secret. */
async function findTokenCommand ({ users, clients }: Services): Promise<string> {
  for await (const [client] of clients.list({ sort: 'created:asc', limit: 1 }, OPERATOR)) {
    const owner = await users.get(client?.userId ?? '')
    if (client !== undefined && owner !== null) return `${CALL} token create --account ${owner.account} --client ${client.clientId}`
  }
  return await users.count() === 0 ? `${CALL} bootstrap` : `${CALL} help`
}

/** Quotes an argument for a shell. */
function quote (text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

interface WelcomeOptions {
  /** URL of the service. */
  url: string
  production: boolean
  /** URLs of pages to open in a browser. */
  pages?: readonly string[]
  /** Folder for the secrets, when the text itself goes to a log. */
  secretsDir?: string | undefined
}

/** The pages for people. Those of the account and the console are under the issuer, because their forms are refused elsewhere. */
export function listPages ({ oidc, openapi, console: own }: Pick<Config, 'oidc' | 'openapi' | 'console'>, url: string): string[] {
  const base = oidc === false ? undefined : oidc.issuer ?? url
  const account = oidc === false || oidc.accountPath === false ? [] : [`${base}${oidc.accountPath ?? DEFAULT_ACCOUNT_PATH}`]
  return [...account, ...(own ? [`${base}${own.path}`] : []), ...(openapi ? [`${url}/docs`] : [])]
}

/**
 * Creates the first admin in an empty store, and explains how to call the service. In production it does neither.
 * @returns text for the terminal; empty in production. It contains secrets unless there is a folder for them
 */
export async function welcome (services: Services, { url, production, pages = [], secretsDir }: WelcomeOptions): Promise<string> {
  if (production) return ''
  const browse = pages.length === 0 ? [] : ['Pages to open in a browser:', '', ...pages.map((page) => `  ${page}`), '']
  const call = (header: string) => ['The first call:', '', `  curl -H ${header} ${url}/api/v1/auth/tokeninfo`, '', ...browse, '']
  const first = await createFirstAdmin(services)
  if (first === null) {
    return ['', `Ready at ${url}. To get an access token, run:`, '', `  ${await findTokenCommand(services)}`, '', ...browse, ''].join('\n')
  }
  const made = `Ready at ${url}. The database was empty, so a first admin was created.`
  const secrets = [
    `  account   ${first.account}`,
    `  password  ${first.password}`,
    `  client    ${first.client_id}`,
    `  token     ${first.access_token}`,
    ''
  ]
  if (secretsDir === undefined) {
    return ['', `${made} This is shown only once:`, '', ...secrets, ...call(`'Authorization: Bearer ${first.access_token}'`)].join('\n')
  }
  const [file, token] = [toFirstSecretsFile(secretsDir), resolve(join(secretsDir, 'first-token'))]
  await writeSecretFile(file, secrets.join('\n'))
  await writeSecretFile(token, `${first.access_token}\n`)
  return ['', `${made} The password and the token are in ${file}`, '', ...call(`"Authorization: Bearer $(cat ${quote(token)})"`)].join('\n')
}
