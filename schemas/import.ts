import { Type, type Static } from '@sinclair/typebox'
import { AttributesSchema, InfoSchema, LIMITS, RolesSchema } from './common.ts'

/** Limits of an import. */
export const IMPORT_LIMITS = {
  /** Bytes of a line. */
  line: 64 * 1024,
  /** Characters of a hash, and of each of its parameters. */
  hash: 1_024,
  /** Ids of a person in other systems, identities at other providers, and authenticator apps. */
  external: 10,
  identities: 10,
  totp: 3,
  /** Characters of an id in another system, or of a subject there. */
  externalId: 255
} as const

/** The name of a system that people come from, and of a run of an import. */
export const NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'

/** The id of a user that an import sets. */
export const USER_ID_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._|:@-]{0,127}$'

const Text = (maxLength: number = IMPORT_LIMITS.hash) => Type.String({ minLength: 1, maxLength })
const Whole = () => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const closed = { additionalProperties: false } as const

/**
 * The forms of a password hash. One that names its own format is `hash` alone: a stored hash of this service, a modular crypt or PHC
 * string, or one of Django, Werkzeug or LDAP. Others come with their parameters; texts are base64 unless said otherwise.
 */
const Described = {
  pbkdf2: Type.Object({
    scheme: Type.Literal('pbkdf2'),
    digest: Type.Union([Type.Literal('sha1'), Type.Literal('sha256'), Type.Literal('sha512')]),
    iterations: Whole(),
    salt: Text(),
    hash: Text()
  }, closed),
  scrypt: Type.Object({
    scheme: Type.Union([Type.Literal('scrypt'), Type.Literal('scrypt-nfkc')]), N: Whole(), r: Whole(), p: Whole(), salt: Text(), hash: Text()
  }, closed),
  argon2: Type.Object({
    scheme: Type.Union([Type.Literal('argon2i'), Type.Literal('argon2d'), Type.Literal('argon2id')]),
    memory: Whole(),
    passes: Whole(),
    parallelism: Whole(),
    salt: Text(),
    hash: Text()
  }, closed),
  firebase: Type.Object({
    scheme: Type.Literal('firebase'),
    rounds: Whole(),
    memory_cost: Whole(),
    salt: Text(),
    hash: Text(),
    salt_separator: Type.String({ maxLength: IMPORT_LIMITS.hash }),
    signer_key: Text()
  }, closed),
  named: Type.Object({
    scheme: Type.Union([Type.Literal('better-auth'), Type.Literal('aspnet')], {
      description: '`better-auth`: salt and hash in hexadecimal with a colon between them. `aspnet`: the base64 of ASP.NET Core Identity 2 or 3.'
    }),
    hash: Text()
  }, closed),
  digest: Type.Object({
    scheme: Type.Union([Type.Literal('md5'), Type.Literal('sha1')], { description: 'Only if the import allows weak hashes.' }),
    order: Type.Union([Type.Literal('before'), Type.Literal('after')], { description: 'Whether the salt is before or after the password.' }),
    salt: Type.String({ minLength: 1, maxLength: IMPORT_LIMITS.hash, description: 'In plain text.' }),
    hash: Type.String({ minLength: 1, maxLength: IMPORT_LIMITS.hash, description: 'In hexadecimal.' })
  }, closed)
}

const HashSchema = Type.Object({ hash: Text() }, closed)

const ImportPasswordSchema = Type.Union([
  HashSchema, Described.pbkdf2, Described.scrypt, Described.argon2, Described.firebase, Described.named, Described.digest
], { description: 'A hash of the password, as another system or this service has stored it.' })
export type ImportPassword = Static<typeof ImportPasswordSchema>

/** The schema of a password with this `scheme`; undefined: it has none. Null when there is no such scheme. */
export function findPasswordSchema (scheme: unknown): object | null {
  if (scheme === undefined) return HashSchema
  const { pbkdf2, scrypt, argon2, firebase, named, digest } = Described
  const schemas: Record<string, object> = {
    pbkdf2, scrypt, 'scrypt-nfkc': scrypt, argon2i: argon2, argon2d: argon2, argon2id: argon2, firebase, 'better-auth': named, aspnet: named, md5: digest, sha1: digest
  }
  return typeof scheme === 'string' && Object.hasOwn(schemas, scheme) ? schemas[scheme]! : null
}

const TotpSchema = Type.Object({
  secret: Type.String({ minLength: 1, maxLength: 256, description: 'Base32, at least 80 bits.' }),
  algorithm: Type.Optional(Type.String({ maxLength: 16, description: 'Only SHA-1, as authenticator apps have no other.' })),
  digits: Type.Optional(Type.Integer({ description: 'Only 6.' })),
  period: Type.Optional(Type.Integer({ description: 'Only 30.' }))
}, closed)

const IdentitySchema = Type.Object({
  issuer: Type.String({ minLength: 1, maxLength: LIMITS.uri }),
  subject: Type.String({ minLength: 1, maxLength: IMPORT_LIMITS.externalId })
}, closed)

/** A person, as one line of an import. */
export const ImportLineSchema = Type.Object({
  id: Type.Optional(Type.String({
    pattern: USER_ID_PATTERN, description: 'The id of the user, which apps know as `sub`. Absent: the service generates one.'
  })),
  external: Type.Optional(Type.Record(
    Type.String({ pattern: NAME_PATTERN }), Type.String({ minLength: 1, maxLength: IMPORT_LIMITS.externalId }),
    { maxProperties: IMPORT_LIMITS.external, additionalProperties: false, description: 'The ids of the person in other systems, by the name of the system.' }
  )),
  account: Type.String({
    maxLength: LIMITS.account, description: 'An email address, or letters, digits, - and _ starting with a letter or digit. Lower-cased.'
  }),
  email: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.account })),
  email_verified: Type.Optional(Type.Boolean({ description: 'Whether the other system has verified `email`. Believed only if the import trusts addresses.' })),
  name: Type.Optional(Type.String({ maxLength: LIMITS.name })),
  roles: Type.Optional(RolesSchema),
  info: Type.Optional(InfoSchema),
  attributes: Type.Optional(AttributesSchema),
  disabled: Type.Optional(Type.Boolean()),
  expired_at: Type.Optional(Type.String({ maxLength: 64, description: 'RFC 3339.' })),
  created_at: Type.Optional(Type.String({ maxLength: 64, description: 'RFC 3339. Absent: the time of the import.' })),
  password: Type.Optional(ImportPasswordSchema),
  totp: Type.Optional(Type.Array(TotpSchema, { maxItems: IMPORT_LIMITS.totp, description: 'Authenticator apps.' })),
  identities: Type.Optional(Type.Array(IdentitySchema, { maxItems: IMPORT_LIMITS.identities, description: 'Identities at other providers.' }))
}, { ...closed, title: 'ImportLine', examples: [{ id: 'auth0|5f7c8ec7c33c6c004bbafe82', account: 'ann@example.com', password: { hash: '$2b$10$...' } }] })
export type ImportLine = Static<typeof ImportLineSchema>

/** What became of one line. */
export const ImportVerdictSchema = Type.Object({
  line: Type.Integer({ minimum: 1, description: 'The number of the line. Empty lines count too, and have no verdict.' }),
  result: Type.Union([Type.Literal('created'), Type.Literal('updated'), Type.Literal('same'), Type.Literal('refused')], {
    description: '`same`: the person was there, and nothing was written.'
  }),
  user_id: Type.Optional(Type.String({ description: 'The person who was created or found.' })),
  reason: Type.Optional(Type.String({ description: 'Why the line was refused.' })),
  field: Type.Optional(Type.String({ description: 'The field because of which it was refused.' })),
  dropped: Type.Optional(Type.Array(Type.String(), { description: 'Fields of the line that were not taken.' }))
}, { title: 'ImportVerdict' })
export type ImportVerdict = Static<typeof ImportVerdictSchema>

/** A line as a reader of a format gives it: its value, which the import checks, or why there is none. */
export type ImportItem = {
  line: number
  value: unknown
  /** Fields of the other system that the reader left out. */
  dropped?: string[]
} | {
  line: number
  reason: string
  field?: string
}

const Counts = (description: string) => Type.Record(Type.String(), Type.Integer({ minimum: 0 }), { description })

/** What a run did, or what it would do. */
export const ImportReportSchema = Type.Object({
  run: Type.String({ description: 'The name of the run, for `user import --withdraw`.' }),
  source: Type.String(),
  created: Type.Integer(),
  updated: Type.Integer(),
  same: Type.Integer(),
  refused: Type.Integer(),
  refusals: Counts('Refused lines by the field because of which they were; `line` where there was none.'),
  dropped: Counts('Fields that were not taken.'),
  schemes: Counts('People who got the password of their line, by the scheme of the hash; `own` for hashes of this service.'),
  sign_in_ms: Type.Number({ description: 'Estimated milliseconds of one thread for one sign-in of each of them.' })
}, { title: 'ImportReport' })
export type ImportReport = Static<typeof ImportReportSchema>

/** How an import treats what it finds. */
export interface ImportOptions {
  /** The name of the system that the people come from. */
  source: string
  /** The name of the run. Absent: a new one. */
  run?: string | undefined
  /** What to do with somebody who is here already. `skip`, which is the default, changes nobody. */
  onConflict?: 'skip' | 'update' | 'fail' | undefined
  /** Whether nothing is written. */
  dryRun?: boolean | undefined
  /** Whether `email_verified` is believed. */
  trustEmails?: boolean | undefined
  /** Whether people may have the roles of administrators, managers and services. */
  allowRoles?: boolean | undefined
  /** Whether salted MD5 and SHA-1 are accepted. */
  allowWeak?: boolean | undefined
  /** Whether authenticator apps that cannot be taken are left out. Absent: their lines are refused. */
  withoutFactors?: boolean | undefined
  /** Whether people without a password are marked, so that the former system is asked for it at their first sign-in. */
  lazy?: boolean | undefined
  /** Whether people come back who were deleted here. */
  again?: boolean | undefined
  /** Whether the lines are those of `user export --with-hashes`. Only the command line says so. */
  kept?: boolean | undefined
}

const Switch = (description: string) => Type.Optional(Type.Union([Type.Literal('true'), Type.Literal('false')], { description }))

export const ImportQuerySchema = Type.Object({
  source: Type.String({ pattern: NAME_PATTERN, description: 'The name of the system that the people come from.' }),
  run: Type.Optional(Type.String({ pattern: NAME_PATTERN, description: 'The name of the run. Absent: a new one, in the header Identity-Import-Run.' })),
  on_conflict: Type.Optional(Type.Union([Type.Literal('skip'), Type.Literal('update'), Type.Literal('fail')], {
    description: 'What to do with somebody who is here already. `skip` (default) changes nobody. `update` changes name, info, attributes and external of ' +
      'people whom the same source has brought in. `fail` refuses the line if it differs.'
  })),
  dry_run: Switch('Writes nothing, and ends with a report.'),
  trust_emails: Switch('Believes `email_verified`.'),
  allow_roles: Switch('Accepts the roles of administrators, managers and services.'),
  allow_weak: Switch('Accepts salted MD5 and SHA-1.'),
  without_factors: Switch('Leaves out authenticator apps that cannot be taken, instead of refusing their lines.'),
  lazy: Switch('Marks people without a password: at their first sign-in the old system is asked, see `migrate`.'),
  again: Switch('Brings people in again who were deleted here. Without it their lines are refused as long as events are kept.')
}, { additionalProperties: false })
export type ImportQuery = Static<typeof ImportQuerySchema>
