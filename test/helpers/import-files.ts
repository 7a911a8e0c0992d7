import fc from 'fast-check'
import { EXPORT_FORMAT } from '../../schemas/export.ts'

/** A person of another system, as each of its formats can write them. */
export interface FilePerson {
  id: string
  username: string
  email: string | undefined
  isVerified: boolean
  name: string
  city: string | undefined
  isDisabled: boolean
  created: string
  hash: string | undefined
  seed: string | undefined
  subject: string | undefined
  /** Of lines of our own: whether they have an id, an id in the source, both or none. */
  names: 'id' | 'external' | 'both' | 'none'
  role: string | undefined
  /** Something that the reader refuses or drops. */
  isOdd: boolean
}

const DIGEST = 'x'.repeat(42) + 'A'
const SEEDS = ['JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP', 'KRSXG5CTMVRXEZLUKRSXG5CTMVRXEZLU', 'MFRGGZDFMFRGGZDF', 'short']
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

/** Old tables have many costs, so the hashes of a file have many forms. */
const hashes = fc.oneof(
  fc.integer({ min: 1, max: 40 }).map((count) => `pbkdf2_sha256$${count}000$c2FsdA$${DIGEST}=`),
  fc.integer({ min: 4, max: 9 }).map((cost) => `$2b$0${cost}$KT0wB1.jJmMU1NuFB4JDm.2.TEOuCNGPCzaBPBlaaxG3JbeF5EFzi`),
  fc.constantFrom('aB3dE6gH$2b$04$KT0wB1.jJmMU1NuFB4JDm.2.TEOuCNGPCzaBPBlaaxG3JbeF5EFzi', 'md5$salt$0123456789abcdef0123456789abcdef', 'no hash', '$P$HQRaTwmfeRo7ud9Fh4E2PdI0S3r.L0x')
)

/** Few values, so that people of a file clash with each other and with those who are here. */
const people: fc.Arbitrary<FilePerson> = fc.record({
  id: fc.constantFrom('1', '2', '3', '4', '5', '6', '7', '8'),
  username: fc.constantFrom('ann', 'Ann', 'bob', 'cleo', 'dan', 'eve', 'fay', 'no name!'),
  email: maybe(fc.constantFrom('ann', 'bob', 'cleo', 'gus', 'hal').map((name) => `${name}@example.com`)),
  isVerified: fc.boolean(),
  name: fc.constantFrom('', 'Ann Lee', 'Bob', 'bad\u202ename'),
  city: maybe(fc.constantFrom('Berlin', 'Rome')),
  isDisabled: fc.boolean(),
  created: fc.constantFrom('2019-04-05T06:07:08.000Z', '2020-01-01T00:00:00.000Z'),
  hash: maybe(hashes),
  seed: maybe(fc.constantFrom(...SEEDS)),
  subject: maybe(fc.constantFrom('s1', 's2', 's3')),
  names: fc.constantFrom('id', 'external', 'both', 'none'),
  role: fc.constantFrom(undefined, undefined, undefined, 'editor', 'admin'),
  isOdd: fc.nat(9).map((number) => number === 0)
})

const crowded = fc.array(people, { maxLength: 24 })

/** Many people who clash with nobody, so that they are written at once, each with a hash of another form. */
const wide = fc.array(people, { minLength: 10, maxLength: 40 }).map((list) => list.map((person, index): FilePerson => ({
  ...person,
  id: String(100 + index),
  username: `w${index}`,
  email: `w${index}@example.com`,
  name: 'Ann Lee',
  hash: `$argon2id$v=19$m=${1_000 + index},t=1,p=1$c2FsdHNhbHQ$${DIGEST}`,
  seed: undefined,
  subject: undefined
})))

/** The people of a file. */
export const files = fc.oneof({ weight: 2, arbitrary: crowded }, { weight: 1, arbitrary: wide })

const GOOGLE = 'https://accounts.google.com'
const toLines = (rows: readonly object[]): string => rows.map((row) => JSON.stringify(row)).join('\n')
const toCell = (value: unknown): string => value === undefined ? '' : `"${String(value).replaceAll('"', '""')}"`
const toCsv = (rows: readonly Record<string, unknown>[], header: readonly string[]): string =>
  [header.join(','), ...rows.map((row) => header.map((name) => toCell(row[name])).join(','))].join('\n')
const toWay = (id: string, seed: string) => ({ id: id.replaceAll(/[^0-9A-Za-z]/g, ''), kind: 'totp', seed, at: '2019-04-05T06:07:08.000Z', created_at: '2019-04-05T06:07:08.000Z', material: { step: 1 } })

/** Writes a file of each format. */
export const WRITERS: Record<string, (people: readonly FilePerson[]) => string> = {
  ndjson: (people) => toLines(people.map(({ id, username, email, isVerified, name, city, isDisabled, created, hash, seed, subject, names, role, isOdd }) => ({
    ...((names === 'id' || names === 'both') && { id }),
    ...((names === 'external' || names === 'both') && { external: { old: id } }),
    account: username,
    email,
    email_verified: isVerified,
    name,
    ...(city !== undefined && { info: { city, zero: -0 } }),
    disabled: isDisabled,
    created_at: created,
    ...(hash !== undefined && { password: { hash } }),
    ...(seed !== undefined && { totp: [{ secret: seed }] }),
    ...(subject !== undefined && { identities: [{ issuer: GOOGLE, subject }] }),
    ...(role !== undefined && { roles: { [role]: true } }),
    ...(isOdd && { odd: 1 })
  }))),

  csv: (people) => toCsv(people.map(({ id, username, email, isVerified, city, isDisabled, hash, seed, subject, names, isOdd }) => ({
    id: names === 'id' || names === 'both' ? id : undefined,
    'external.old': names === 'external' || names === 'both' ? id : undefined,
    account: username,
    email,
    email_verified: isOdd ? 'perhaps' : isVerified,
    'info.city': city,
    disabled: isDisabled,
    'password.hash': hash,
    'totp.secret': seed,
    'identities.issuer': subject === undefined ? undefined : GOOGLE,
    'identities.subject': subject
  })), ['id', 'external.old', 'account', 'email', 'email_verified', 'info.city', 'disabled', 'password.hash', 'totp.secret', 'identities.issuer', 'identities.subject']),

  auth0: (people) => toLines(people.map(({ id, username, email, isVerified, name, city, isDisabled, created, hash, seed, subject, isOdd }) => ({
    user_id: `auth0|${id}`,
    username,
    email,
    email_verified: isVerified,
    name,
    user_metadata: { city },
    blocked: isDisabled,
    created_at: created,
    passwordHash: hash,
    mfa_factors: seed === undefined ? [] : [{ totp: { secret: seed } }],
    identities: subject === undefined ? [] : [{ provider: 'google-oauth2', user_id: subject }],
    ...(isOdd && { multifactor: ['guardian'] })
  }))),

  firebase: (people) => JSON.stringify({
    users: people.map(({ id, email, isVerified, name, isDisabled, created, hash, subject, isOdd }) => ({
      localId: id,
      email,
      emailVerified: isVerified,
      displayName: name,
      disabled: isDisabled,
      createdAt: String(Date.parse(created)),
      passwordHash: hash === undefined ? undefined : Buffer.from(hash).toString('base64'),
      providerUserInfo: subject === undefined ? [] : [{ providerId: 'google.com', rawId: subject }],
      ...(isOdd && { mfaInfo: [{}] })
    }))
  }),

  keycloak: (people) => JSON.stringify({
    realm: 'shop',
    users: people.map(({ id, username, email, isVerified, name, isDisabled, created, hash, seed, subject, isOdd }, index) => ({
      id,
      username,
      email,
      emailVerified: isVerified,
      firstName: name,
      enabled: !isDisabled,
      createdTimestamp: Date.parse(created),
      credentials: [
        ...(hash === undefined
          ? []
          : [{ type: 'password', secretData: JSON.stringify({ value: `${'A'.repeat(43)}=`, salt: 'c2FsdHNhbHQ=' }), credentialData: JSON.stringify({ hashIterations: 1_000 + index, algorithm: 'pbkdf2-sha256' }) }]),
        ...(seed === undefined
          ? []
          : [{ type: 'otp', secretData: JSON.stringify({ value: seed }), credentialData: JSON.stringify({ subType: 'totp', digits: isOdd ? 8 : 6, period: 30, algorithm: 'HmacSHA1', secretEncoding: 'BASE32' }) }])
      ],
      federatedIdentities: subject === undefined ? [] : [{ identityProvider: 'google', userId: subject }]
    }))
  }),

  django: (people) => JSON.stringify(people.map(({ id, username, email, name, isDisabled, created, hash = '!', isOdd }) => ({
    model: isOdd ? 'auth.group' : 'auth.user',
    pk: Number(id),
    fields: { password: hash, last_login: null, username, email: email ?? '', first_name: name, is_active: !isDisabled, date_joined: created }
  }))),

  clerk: (people) => toCsv(people.map(({ id, username, email, isVerified, name, hash, seed, isOdd }) => ({
    id: `user_${id}`,
    first_name: name,
    username,
    primary_email_address: email,
    verified_email_addresses: isVerified ? email : '',
    totp_secret: seed,
    password_digest: hash,
    password_hasher: hash === undefined ? undefined : isOdd ? 'md5' : 'bcrypt'
  })), ['id', 'first_name', 'username', 'primary_email_address', 'verified_email_addresses', 'totp_secret', 'password_digest', 'password_hasher']),

  supabase: (people) => toLines(people.map(({ id, email, isVerified, name, city, isDisabled, created, hash, seed, subject, isOdd }) => ({
    id,
    email,
    email_confirmed_at: isVerified ? created : null,
    raw_user_meta_data: { full_name: name, city },
    banned_until: isDisabled ? '2999-01-01T00:00:00Z' : null,
    created_at: created,
    encrypted_password: hash,
    identities: subject === undefined ? [] : [{ provider: 'google', provider_id: subject }],
    mfa_factors: seed === undefined ? [] : [{ factor_type: isOdd ? 'phone' : 'totp', status: 'verified', secret: seed }]
  }))),

  'better-auth': (people) => toLines(people.map(({ id, username, email, isVerified, name, isDisabled, created, hash, subject, isOdd }) => ({
    id,
    username,
    email,
    emailVerified: isVerified,
    name,
    banned: isDisabled,
    createdAt: created,
    twoFactorEnabled: isOdd,
    accounts: [...(hash === undefined ? [] : [{ providerId: 'credential', password: hash }]), ...(subject === undefined ? [] : [{ providerId: 'google', accountId: subject }])]
  }))),

  'fastify-identity': (people) => toLines(people.map(({ id, username, isDisabled, created, hash, seed, subject, role, isOdd }) => ({
    format: EXPORT_FORMAT,
    id,
    account: username,
    created_at: created,
    ...(isDisabled && { disabled: true }),
    ...(hash !== undefined && { password: { hash } }),
    ...(role !== undefined && { roles: { [role]: true } }),
    kept: {
      modified_at: created,
      ...(isDisabled && { disabled_at: created }),
      ways: seed === undefined ? [] : [toWay(`way${subject ?? id}`, seed), ...(isOdd ? [toWay(`other${id}`, seed)] : [])]
    }
  })))
}
