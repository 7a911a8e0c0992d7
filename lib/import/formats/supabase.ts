import type { ImportLine } from '../../../schemas/import.ts'
import { compact, isObject, Refusal, type Source, toAccount } from './source.ts'

type Password = NonNullable<ImportLine['password']>

/** Ways to sign in that are no identities at other providers. */
const OWN = new Set(['email', 'phone', 'anonymous'])

const CLAIMS = new Set(['sub', 'iss', 'email', 'email_verified', 'phone_verified', 'provider_id'])

/** Columns of links that are under way, and of Supabase itself. */
const IGNORED = [
  'instance_id', 'aud', 'role', 'invited_at', 'confirmation_token', 'confirmation_sent_at', 'recovery_token', 'recovery_sent_at',
  'email_change_token_new', 'email_change_token_current', 'email_change_confirm_status', 'email_change_sent_at', 'last_sign_in_at',
  'updated_at', 'phone_change_token', 'phone_change_sent_at', 'confirmed_at', 'reauthentication_token',
  'reauthentication_sent_at', 'is_sso_user', 'phone_confirmed_at'
]

/** A hash that was taken over from Firebase has the parameters of its project. */
const FIREBASE = new RegExp(String.raw`^\$fbscrypt\$v=1,n=(?<n>\d{1,2}),r=(?<r>\d{1,4})(?:,p=1)?(?:,ss=(?<separator>[^,$]*))?` +
  String.raw`,sk=(?<signer>[^,$]+)\$(?<salt>[^$]+)\$(?<hash>[^$]+)$`)

function readPassword (text: string | undefined): Password | undefined {
  if (text === undefined) return undefined
  const { n, r, separator = '', signer = '', salt = '', hash = '' } = FIREBASE.exec(text)?.groups ?? {}
  if (n === undefined) return { hash: text }
  return { scheme: 'firebase', memory_cost: Number(n), rounds: Number(r), salt_separator: separator, signer_key: signer, salt, hash }
}

/** The authenticator apps of `auth.mfa_factors`. An export without this column does not tell who has one. */
function readFactors (source: Source): ImportLine['totp'] {
  if (!source.names.includes('mfa_factors')) source.loseFactor('mfa_factors', 'is missing, so the file does not tell who uses two-factor authentication')
  const verified = source.list('mfa_factors').filter(({ status }) => status === 'verified')
  const apps = verified.flatMap(({ factor_type: type, secret }) => (type === 'totp' && typeof secret === 'string' ? [{ secret }] : []))
  if (apps.length < verified.length) source.loseFactor('mfa_factors')
  return apps.length === 0 ? undefined : apps
}

/** What people have stored about themselves. Supabase puts claims of its own beside it. */
function readInfo (source: Source): ImportLine['info'] {
  const entries = Object.entries(source.object('raw_user_meta_data') ?? {}).filter(([name]) => !CLAIMS.has(name))
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

function readIdentities (source: Source): ImportLine['identities'] {
  const others = source.list('identities').filter(({ provider }) => !OWN.has(String(provider)))
  return others.flatMap(({ provider, provider_id: id, identity_data: data }) =>
    source.identity(String(provider), id ?? (isObject(data) ? data['sub'] : undefined)))
}

/** Supabase: rows of `auth.users` as CSV or as lines of JSON, with `identities` and `mfa_factors` if they were joined. */
export function convertSupabase (source: Source): ImportLine {
  const id = source.text('id')
  if (id === undefined) throw new Refusal('is required', 'id')
  if (source.take('deleted_at') !== undefined) throw new Refusal('is the time when this account was deleted', 'deleted_at')
  if (source.flag('is_anonymous') === true) throw new Refusal('this account belongs to nobody yet', 'is_anonymous')
  const email = source.text('email')
  const info = readInfo(source) as Record<string, unknown> | undefined
  const name = [info?.['full_name'], info?.['name']].find((one) => typeof one === 'string' && one !== '') as string | undefined
  const banned = source.time('banned_until')
  // The provider and its list are in auth.identities.
  const app = Object.keys(source.object('raw_app_meta_data') ?? {})
  if (app.some((key) => key !== 'provider' && key !== 'providers')) source.drop('raw_app_meta_data')
  source.ignore(...IGNORED)
  return compact<ImportLine>({
    id,
    external: { [source.options.source]: id },
    ...toAccount(source, { email, verified: source.time('email_confirmed_at') !== undefined, prefer: 'email' }),
    name,
    info,
    disabled: banned === undefined ? undefined : banned > new Date().toISOString(),
    created_at: source.time('created_at'),
    password: readPassword(source.text('encrypted_password')),
    totp: readFactors(source),
    identities: readIdentities(source)
  })
}
