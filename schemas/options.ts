import { Type, type Static } from '@sinclair/typebox'
import { InHostDocumentSchema } from './common.ts'
import { FixedResourcesSchema } from './resource.ts'
import { MOST_UPSTREAMS, UpstreamSchema } from './upstream.ts'

/** Who may call a route: any caller, holders of a role, or the user in the path's userId. One match is enough. */
export const AccessRuleSchema = Type.Object({
  any: Type.Optional(Type.Literal(true)),
  roles: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { minItems: 1 })),
  owner: Type.Optional(Type.Literal(true))
}, { additionalProperties: false, minProperties: 1 })
export type AccessRule = Static<typeof AccessRuleSchema>

const RoleName = (name: string) => Type.String({ minLength: 1, default: name })

const FACTORS = { expects: 'off, optional, required, or { roles: [...] } with the name of a role' }

/** Who needs a second factor. */
export const FactorsSchema = Type.Union([
  Type.Literal('off', FACTORS),
  Type.Literal('optional', FACTORS),
  Type.Literal('required', FACTORS),
  Type.Object({ roles: Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 100 }) }, { additionalProperties: false })
], {
  default: 'optional',
  description: 'Who needs two-factor authentication (2FA) to sign in: `optional`, those who have set it up; `required`, everybody; `{ roles: [...] }`, ' +
    'those who have set it up, and those who hold one of these roles, by their names in user records; `off`, as `optional`, and nobody can ' +
    'set it up. See docs/second-factor.md.'
})

/** The most days that a personal access token may live: ten years. */
const MOST_DAYS = 3650

const Named = (description: string) => Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 2048 }), { maxItems: 100, description }))

/** Whether people may make personal access tokens, and of which kind. */
export const PersonalTokensSchema = Type.Union([
  Type.Literal(false),
  Type.Object({
    maxDays: Type.Integer({ minimum: 1, maximum: MOST_DAYS, description: 'Days that a token may live at most.' }),
    scopes: Named('The scopes that tokens may have. Absent: those of this service without account:security, `roles`, and those of resources that any user may give to their clients.'),
    roles: Named('Who may make one: whoever holds one of these roles. Absent: everybody.'),
    resources: Named('The URIs of the resources that tokens may be for. Absent: all.')
  }, { additionalProperties: false })
], {
  default: false,
  expects: `false, or { maxDays } from 1 to ${MOST_DAYS}, with the lists scopes, roles and resources if wanted`,
  description: '`{ maxDays, scopes, roles, resources }`: people may make personal access tokens for their scripts, which live `maxDays` at most; the lists narrow what these may do, who may make one, and which resources they are for. `false`: nobody can, and those that exist are refused and kept. See docs/tokens.md.'
})
export type PersonalTokens = Exclude<Static<typeof PersonalTokensSchema>, false>

/** The console of administrators and support staff. */
export const ConsoleSchema = Type.Union([
  Type.Literal(false),
  Type.Object({
    path: Type.String({ pattern: '^(/[\\w.~-]+)+$', expects: 'a path such as /admin' }),
    acr: Type.Optional(Type.Union([Type.Literal('1'), Type.Literal('mfa'), Type.Literal('phr')])),
    adminNetworks: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { minItems: 1, maxItems: 100 }))
  }, { additionalProperties: false })
], {
  default: false,
  expects: 'false, or { path } such as /admin, with acr and the list adminNetworks if wanted',
  description: '`{ path, acr, adminNetworks }`: the console of administrators and support staff, on pages at `path` after the prefix. `acr` is how strongly they must have signed in: `1`, `mfa` or `phr`; absent: `mfa` in production, otherwise `1`. `adminNetworks` are the addresses, and networks such as 10.0.0.0/8, from which it is there; absent: all. Takes the authorization server. `false`: there is none. See docs/console.md.'
})
export type ConsoleOptions = Exclude<Static<typeof ConsoleSchema>, false>

/** A name of the operator's own, so that no header with a meaning is one. */
export const RULE_HEADER = '^([Xx]|[Ii]dentity)-[A-Za-z0-9-]{1,60}$'

export const RULE_HEADER_NAME = 'a header that begins with X- or Identity-'

/** The identity plugin's plain-data options. Defaults are defined here and nowhere else. No output has the value of a `writeOnly` one. */
export const OptionsSchema = Type.Object({
  database: Type.String({
    minLength: 1,
    default: 'sqlite:data/identity.db',
    writeOnly: true,
    description: '`sqlite:PATH`, `sqlite::memory:` for tests, or a `mongodb://` or `mongodb+srv://` URL.'
  }),
  storeTimeout: Type.Integer({
    minimum: 100, maximum: 600_000, default: 10_000, description: 'Milliseconds for one store operation; a slower one fails with ErrDb.'
  }),
  walLimit: Type.Integer({
    minimum: 64, maximum: 1_048_576, default: 1024, description: 'MiB that the write-ahead log of an SQLite database may have. Beyond it, a list is ended each second, the oldest first; its reader gets an error.'
  }),
  secretKey: Type.Optional(Type.String({
    minLength: 1, writeOnly: true, description: '32 random bytes as base64 or hex. Client secrets are encrypted with it. Several keys, with commas or white space between them, for a rotation: the first encrypts, all decrypt. Absent: a key file in dataDir, created at the first start.'
  })),
  dataDir: Type.Optional(Type.String({
    minLength: 1, description: "Folder of the created key file. Absent: the SQLite database's folder, or `data`."
  })),
  production: Type.Boolean({ default: false, description: '`true` refuses to start without secretKey, and makes no database by itself.' }),
  createDatabase: Type.Optional(Type.Boolean({
    description: 'Makes a missing or empty database at the start; otherwise that is an error. Absent: not in production.'
  })),
  bcryptCost: Type.Integer({ minimum: 4, maximum: 20, default: 12, description: 'Cost of a password hash; each step doubles the work.' }),
  passwordMin: Type.Integer({
    minimum: 1,
    maximum: 24,
    default: 8,
    description: 'Characters that a new password must have; 15 is right where the password is all that protects an account. Common ones, the account and the name of the service are refused too. 1: any password that is not empty.'
  }),
  factors: FactorsSchema,
  passkeys: Type.Boolean({
    default: true,
    description: "Whether people can add passkeys and sign in with them. They are off while the issuer's host is an address. `false` also refuses the ones that people have. See docs/second-factor.md."
  }),
  relyingParty: Type.Optional(Type.String({
    minLength: 1,
    maxLength: 253,
    pattern: '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$',
    expects: 'a host in lower case, such as example.com',
    description: "The host that passkeys belong to: the issuer's, or a domain above it. Passkeys of another one do not work. Absent: the issuer's host."
  })),
  hashQueue: Type.Integer({ minimum: 1, maximum: 100_000, default: 10_000, description: 'How many password hashes may wait. When the queue is full, or the wait would exceed 10 s, a request gets ErrBusy.' }),
  prefix: Type.String({ pattern: '^(/[^/?#]+)*$', expects: 'a path such as /identity, with a slash before it and none after it', default: '', description: 'Path in front of `/api/v1`.' }),
  roles: Type.Object({
    admin: RoleName('admin'),
    manager: RoleName('manager'),
    service: RoleName('service'),
    support: Type.Optional(Type.String({ minLength: 1 }))
  }, {
    additionalProperties: false,
    default: {},
    description: 'Other names for the roles `admin`, `manager` and `service` in user records, and the name of the role of support staff, `support`. ' +
      'Without the last there is no such role, see docs/support.md.'
  }),
  managerRoles: Type.Optional(Type.Array(Type.String({ minLength: 1 }), {
    description: 'Roles that callers without the admin role may grant and remove. Absent: all but the admin, service and support roles.'
  })),
  access: Type.Record(Type.String(), AccessRuleSchema, {
    default: {}, description: 'Overrides who may call an operation, by operationId, and never its scope, see docs/access.md (not `getTokenInfo` and `logout`, which every token may call): `{ any: true }`, `{ roles: [...] }`, `{ owner: true }`.'
  }),
  resources: FixedResourcesSchema,
  rateLimit: Type.Union([Type.Literal(false), Type.Integer({ minimum: 1, maximum: 1_000_000 })], {
    default: 60, description: 'Password changes per minute and user; further ones get ErrLimit. `false`: unlimited.'
  }),
  writeLimit: Type.Union([Type.Literal(false), Type.Integer({ minimum: 1, maximum: 1_000_000 })], {
    default: 120,
    description: 'Changes per minute and user through the client and user API; further ones get ErrLimit. Administrators have no limit. As many tokens a minute do the clients of one owner get by client credentials, unless the operator vouches for the client. `false` here or in rateLimit: unlimited.'
  }),
  clientsPerUser: Type.Union([Type.Literal(false), Type.Integer({ minimum: 0, maximum: 1_000_000 })], {
    default: 100,
    description: 'Clients that a user may have; further ones get ErrLimit. Administrators have no limit. `false` here or in rateLimit: unlimited.'
  }),
  stallTimeout: Type.Integer({
    minimum: 100, maximum: 3_600_000, default: 60_000, description: 'Milliseconds after which a client that reads nothing of a streamed list is disconnected.'
  }),
  mail: Type.Optional(Type.Object({
    url: Type.String({ minLength: 1, maxLength: 2048, writeOnly: true }),
    from: Type.String({ minLength: 1, maxLength: 320 }),
    logo: Type.Optional(Type.String({
      minLength: 1, maxLength: 100_000, description: 'Logo in emails: the path of a PNG, JPEG or GIF image, or a `data:` URL with base64; at most 64 KiB. Absent: the logo of the pages, if it is of such a type, and otherwise the name.'
    }))
  }, {
    additionalProperties: false,
    description: '`{ url, from, logo }`: a mail server, as `smtps://USER:PASSWORD@HOST` or `smtp:` for STARTTLS, the sender, and a logo if that of the pages is an SVG; or `{ send, logo }`, with a function of yours. Takes `oidc.issuer`. Absent: nothing is emailed.'
  })),
  signUp: Type.Boolean({ default: false, description: 'Whether people make accounts for themselves. Takes `mail`.' }),
  signUpDomains: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
    minItems: 1, description: 'The domains whose addresses may sign up. Absent: all.'
  })),
  links: Type.Optional(Type.Object({
    reset: Type.Optional(Type.String()), verify: Type.Optional(Type.String()), invite: Type.Optional(Type.String()), signUp: Type.Optional(Type.String())
  }, {
    additionalProperties: false, description: 'URLs of your own pages, with `{token}`, for the links of `reset`, `verify`, `invite` and `signUp`. Absent: the pages of the service.'
  })),
  undoFactors: Type.Integer({
    minimum: 0,
    maximum: 720,
    default: 72,
    description: 'Hours for which a person can undo the addition of a first authenticator app or passkey, with a link in the email about it. 0: the email has no link.'
  }),
  upstreams: Type.Array(UpstreamSchema, {
    maxItems: MOST_UPSTREAMS,
    default: [],
    description: 'Other providers that people sign in with: Google, Microsoft, GitHub, Apple, or any OpenID Connect server. See docs/upstreams.md.'
  }),
  migrate: Type.Optional(Type.Object({
    url: Type.Optional(Type.String({ minLength: 1, maxLength: 2048, writeOnly: true })),
    secret: Type.Optional(Type.String({ writeOnly: true, pattern: '^whsec_[A-Za-z0-9+/]{32,88}={0,2}$', expects: 'whsec_ and 24 to 64 bytes in base64' })),
    create: Type.Boolean({ default: false }),
    trustEmails: Type.Boolean({ default: false }),
    until: Type.Optional(Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT[\\d:.]{5,16}(Z|[+-]\\d\\d:\\d\\d)$', expects: 'a date and time of RFC 3339' }))
  }, {
    additionalProperties: false,
    description: '`{ url, secret, create, trustEmails, until }`: the old system that people move from, asked for the password of those whom an import has marked, and with `create` of those who are not here. Or `{ verify, find }` with functions of yours, instead of `url` and `secret`. See docs/moving.md. Absent: none.'
  })),
  outboundHosts: Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
    maxItems: 100,
    default: [],
    description: 'Hosts, addresses and networks such as 10.0.0.0/8 that the service may call although they are private, and without TLS. Outside production this device is among them. All others must be public, and are called with TLS.'
  }),
  selfDelete: Type.Boolean({ default: false, description: 'Whether users may delete their own accounts.' }),
  oidc: Type.Union([Type.Literal(false), Type.Object({}, { additionalProperties: true })], {
    default: {}, description: 'Options of the authorization server, see docs/oidc.md. `false`: none, and nobody can sign in.'
  }),
  auditDays: Type.Integer({ minimum: 1, maximum: 36_500, default: 400, description: 'Days for which events are kept.' }),
  addresses: Type.Union([Type.Literal('full'), Type.Literal('net'), Type.Literal('off')], {
    default: 'full',
    description: 'How much of the network addresses of users is stored, in events and for their account pages: `full`; ' +
      '`net`, the network (/24, or /48 of IPv6); `off`, nothing.'
  }),
  openapi: Type.Boolean({ default: true, description: 'Serves `/openapi.json` and the page `/docs`.' }),
  inHostDocument: InHostDocumentSchema,
  forwardAuth: Type.Union([
    Type.Boolean(),
    Type.Object({
      header: Type.String({ pattern: RULE_HEADER, expects: RULE_HEADER_NAME })
    }, { additionalProperties: false })
  ], {
    default: false,
    expects: `false, true, or { header } with the name of ${RULE_HEADER_NAME}`,
    description: 'Answers reverse proxies whether a request may pass, at `/api/v1/auth/forward`, see docs/forward-auth.md. `{ header }`: also below that path, for Envoy, which appends the original path; the proxy sends its rule in this header, and drops it from outside. `false`: no such route.'
  }),
  personalTokens: PersonalTokensSchema,
  console: ConsoleSchema,
  metrics: Type.Optional(Type.String({
    pattern: '^(\\[[0-9a-fA-F:.]+\\]|[^:\\[\\]\\s]+):([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$',
    expects: 'HOST:PORT, such as 127.0.0.1:9464',
    description: 'Address of a listener that serves the metrics of this process at `/metrics`: `HOST:PORT`. Absent: nothing is measured.'
  })),
  health: Type.Boolean({ default: true, description: 'Serves `/health/live` and `/health/ready`.' })
}, { additionalProperties: false })

export type Options = Static<typeof OptionsSchema>
