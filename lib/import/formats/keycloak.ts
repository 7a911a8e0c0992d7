import { Secret } from 'otpauth'
import type { ImportLine } from '../../../schemas/import.ts'
import { readKeycloakHash, readKeycloakJson } from './keycloak-hash.ts'
import { compact, joinName, Refusal, type Source, toAccount } from './source.ts'

const ALGORITHMS: Readonly<Record<string, string>> = { HmacSHA1: 'SHA1', HmacSHA256: 'SHA256', HmacSHA512: 'SHA512' }

type App = NonNullable<ImportLine['totp']>[number]

/** An authenticator app. Keycloak uses the characters of its secret as the key, unless it says that they are base32. */
function readApp (secretData: unknown, credentialData: unknown): App | undefined {
  const { subType, algorithm, digits, period, secretEncoding } = readKeycloakJson(credentialData)
  const { value } = readKeycloakJson(secretData)
  if (subType !== 'totp' || typeof value !== 'string') return undefined
  return compact<App>({
    secret: secretEncoding === 'BASE32' ? value : Secret.fromUTF8(value).base32,
    algorithm: typeof algorithm === 'string' ? ALGORITHMS[algorithm] ?? algorithm : undefined,
    digits: typeof digits === 'number' ? digits : undefined,
    period: typeof period === 'number' ? period : undefined
  })
}

function readCredentials (source: Source): Pick<ImportLine, 'password' | 'totp'> {
  const found: { password?: NonNullable<ImportLine['password']>, totp?: App[] } = {}
  for (const { type, secretData, credentialData } of source.list('credentials')) {
    if (type === 'password') found.password = readKeycloakHash(credentialData, secretData)
    else if (type === 'otp') {
      const app = readApp(secretData, credentialData)
      if (app === undefined) source.loseFactor('credentials.otp')
      else (found.totp ??= []).push(app)
    } else if (type === 'recovery-authn-codes') source.drop('credentials.recovery-authn-codes')
    else source.loseFactor(`credentials.${String(type)}`)
  }
  return found
}

/** The default role says nothing: everybody of the realm has it. */
function readRoles (source: Source): void {
  const roles = source.take('realmRoles')
  if (Array.isArray(roles) && roles.some((role) => !String(role).startsWith('default-roles-'))) source.drop('realmRoles')
}

/** Keycloak: the file of `kc.sh export`, or its files of users. */
export function convertKeycloak (source: Source): ImportLine {
  if (Array.isArray(source.take('users'))) throw new Refusal('is a realm: export one with --realm')
  const id = source.text('id')
  if (id === undefined) throw new Refusal('is required', 'id')
  const client = 'serviceAccountClientId'
  if (source.text(client) !== undefined) throw new Refusal('is the account of a client, not of a person', client)
  readRoles(source)
  source.ignore('totp', 'notBefore', 'disableableCredentialTypes', 'access', 'self', 'origin')
  const [first, last] = [source.text('firstName'), source.text('lastName')]
  const enabled = source.flag('enabled')
  // An administrator has chosen the names of providers.
  const identities = source.list('federatedIdentities')
    .flatMap(({ identityProvider, userId }) => source.identity(String(identityProvider), userId, {}))
  return compact<ImportLine>({
    id,
    external: { [source.options.source]: id },
    ...toAccount(source, { username: source.text('username'), email: source.text('email'), verified: source.flag('emailVerified'), prefer: 'username' }),
    ...joinName(first, last),
    disabled: enabled === undefined ? undefined : !enabled,
    created_at: source.time('createdTimestamp'),
    ...readCredentials(source),
    identities
  })
}
