import type { ImportLine } from '../../../schemas/import.ts'
import { compact, Refusal, type Source, toAccount } from './source.ts'

/** What Firebase gives for a hash to callers that may not read it: the base64 of REDACTED. */
const REDACTED = 'UkVEQUNURUQ='

/** Ways to sign in that are no identities at other providers. */
const OWN = new Set(['password', 'phone'])

function readPassword (source: Source): ImportLine['password'] {
  const hash = source.text('passwordHash')
  const salt = source.text('salt')
  if (hash === undefined) return undefined
  if (hash === REDACTED) throw new Refusal('is hidden: export again with the permission firebaseauth.configs.getHashConfig', 'passwordHash')
  const text = Buffer.from(hash, 'base64').toString('latin1')
  // People who were imported there and have not signed in since.
  if (/^\$(?:2[aby]|argon2)/.test(text)) return { hash: text }
  const { hashConfig } = source.options
  if (hashConfig === undefined) throw new Refusal('needs the hash parameters of the Firebase project, which --hash-config gives', 'passwordHash')
  if (salt === undefined) throw new Refusal('is required with a password hash', 'salt')
  return { scheme: 'firebase', hash, salt, ...hashConfig }
}

/** Firebase: `firebase auth:export users.json --format=json`. */
export function convertFirebase (source: Source): ImportLine {
  const id = source.text('localId')
  if (id === undefined) throw new Refusal('is required', 'localId')
  const identities = source.list('providerUserInfo').filter(({ providerId }) => !OWN.has(String(providerId)))
    .flatMap(({ providerId, rawId }) => source.identity(String(providerId), rawId))
  if (source.list('mfaInfo').length > 0) source.loseFactor('mfaInfo')
  source.ignore('lastSignedInAt', 'lastLoginAt', 'lastRefreshAt', 'passwordUpdatedAt', 'validSince', 'version', 'tenantId')
  return compact<ImportLine>({
    id,
    external: { [source.options.source]: id },
    ...toAccount(source, { email: source.text('email'), verified: source.flag('emailVerified'), prefer: 'email' }),
    name: source.text('displayName'),
    disabled: source.flag('disabled'),
    created_at: source.time('createdAt'),
    password: readPassword(source),
    identities
  })
}
