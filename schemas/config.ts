import { Type, type Static } from '@sinclair/typebox'
import { BridgeOptionsSchema } from './bridge.ts'
import { OidcOptionsSchema } from './oidc.ts'
import { OptionsSchema, RULE_HEADER, RULE_HEADER_NAME } from './options.ts'

const LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

const options = OptionsSchema.properties
const roles = options.roles.properties
const oidc = OidcOptionsSchema.properties

const Off = Type.Literal(false)

const PROCESS = {
  HOST: Type.String({ minLength: 1, maxLength: 255, default: '127.0.0.1', description: 'Address to listen on; `0.0.0.0` or `::` for all interfaces.' }),
  PORT: Type.Integer({ minimum: 0, maximum: 65_535, default: 3000, description: 'Port to listen on; 0 picks a free one.' }),
  LOG_LEVEL: Type.Union(LEVELS.map((level) => Type.Literal(level)), {
    default: 'info', description: `\`${LEVELS.join('`, `')}\`. Logs are lines on stdout.`
  }),
  LOG_FORMAT: Type.Optional(Type.Union([Type.Literal('json'), Type.Literal('text')], {
    description: '`json`: each log line is a JSON object; `text`: lines for people, by pino-pretty. `text` by default where stdout is a terminal, otherwise `json`.'
  })),
  NODE_ENV: Type.Optional(Type.String({
    description: '`production` refuses to start without a configured secret key, or on a public address without an https issuer, and never creates a first admin.'
  })),
  IDENTITY_WORKERS: Type.Union([Type.Integer({ minimum: 1, maximum: 256 }), Type.Literal('auto')], {
    default: 1, description: 'Worker processes behind one port; `auto`: one for each core. The flag `--workers` takes precedence.'
  }),
  IDENTITY_SHUTDOWN_TIMEOUT: Type.Integer({
    minimum: 100, maximum: 600_000, default: 10_000, description: 'Milliseconds for requests in flight to finish after SIGTERM; the rest is aborted.'
  }),
  IDENTITY_SHUTDOWN_DELAY: Type.Optional(Type.Integer({
    minimum: 0,
    maximum: 600_000,
    description: 'Milliseconds after SIGTERM for which `/health/ready` answers 503 and all else is served as before, so that a balancer sends no more requests. Absent: 0, and 5000 in production.'
  })),
  IDENTITY_LOG_CALLERS: Type.Boolean({ default: true, description: 'Log lines of authenticated requests have `user_id` and `client_id`.' }),
  IDENTITY_TRUST_PROXY: Type.Union([Off, Type.String()], {
    default: false,
    description: 'Trusted proxies, whose `X-Forwarded-` headers are used: comma-separated addresses, networks such as `10.0.0.0/8`, or the names `loopback` (127.0.0.0/8, ::1), `linklocal` (169.254.0.0/16, fe80::/10) and `uniquelocal` (the private networks 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 and fc00::/7).'
  }),
  IDENTITY_OPENAPI: options.openapi,
  IDENTITY_METRICS: Type.Optional(Type.String({
    ...options.metrics, description: `${options.metrics.description} With several workers, each listens on a port of its own: PORT, PORT + 1 and so on.`
  }))
}

const STORAGE = {
  DATABASE_URL: Type.String({
    ...options.database,
    pattern: '^(sqlite:(?!//).|mongodb(\\+srv)?://.)',
    expects: 'sqlite:PATH, or a mongodb:// or mongodb+srv:// URL'
  }),
  DATABASE_URL_FILE: Type.Optional(Type.String({ description: 'A file with this URL, instead of DATABASE_URL.' })),
  IDENTITY_CREATE_DATABASE: Type.Optional(Type.Boolean({
    description: `\`on\` or \`off\`. ${options.createDatabase.description} The flag \`--create\` takes precedence.`
  })),
  IDENTITY_STORE_TIMEOUT: options.storeTimeout,
  IDENTITY_WAL_LIMIT: options.walLimit,
  IDENTITY_DATA_DIR: options.dataDir,
  IDENTITY_SECRET_KEY: options.secretKey,
  IDENTITY_SECRET_KEY_FILE: Type.Optional(Type.String({
    description: 'A file with the secret key, instead of IDENTITY_SECRET_KEY; for a rotation with a key in each line.'
  }))
}

const SERVER = {
  IDENTITY_OIDC: Type.Boolean({ default: true, description: '`off`: no authorization server. Nobody can sign in; tokens come from the command line.' }),
  IDENTITY_ISSUER: Type.Optional(Type.String({
    ...oidc.issuer, expects: 'an http or https URL without credentials, query, fragment and a slash at its end'
  })),
  IDENTITY_ACCESS_TTL: oidc.accessTtl,
  IDENTITY_REFRESH_TTL: oidc.refreshTtl,
  IDENTITY_REFRESH_MAX: oidc.refreshMax,
  IDENTITY_SESSION_TTL: oidc.sessionTtl,
  IDENTITY_SESSION_MAX: oidc.sessionMax,
  IDENTITY_DOCUMENT_HOSTS: Type.Optional(Type.String({
    maxLength: 8192,
    pattern: '^(\\*|[a-z0-9.:>+-]+)(, ?(\\*|[a-z0-9.:>+-]+))*$',
    expects: 'comma-separated hosts such as agent.example, agent.example>cdn.example or localhost:8443, or * for any',
    description: 'Comma-separated: the hosts whose documents describe clients that nobody has registered, such as agents (MCP), or `*` for any. Documents are at port 443, unless an entry such as `localhost:8443` names another one. `HOST>OTHER` names a further host, or a private scheme with a colon, to which those of a host may redirect. Absent: none. See docs/agents.md.'
  }))
}

const METHODS = {
  IDENTITY_PASSWORD_MIN: options.passwordMin,
  IDENTITY_BCRYPT_COST: options.bcryptCost,
  IDENTITY_HASH_QUEUE: options.hashQueue,
  IDENTITY_PASSKEYS: Type.Boolean({ ...options.passkeys, description: options.passkeys.description?.replace('`false`', '`off`') }),
  IDENTITY_RELYING_PARTY: options.relyingParty,
  IDENTITY_FACTORS: Type.String({
    default: options.factors.default,
    pattern: '^(off|optional|required|roles:.*[^\\s,].*)$',
    expects: 'off, optional, required, or roles: with comma-separated roles',
    description: options.factors.description?.replace('`{ roles: [...] }`', '`roles:ROLE,ROLE`')
  }),
  IDENTITY_UNDO_FACTORS: options.undoFactors,
  IDENTITY_PERSONAL_TOKENS: Type.Union([Off, Type.Integer({ minimum: 1, maximum: 3650 })], {
    default: false,
    description: 'Days that a personal access token may live at most, which people make for their scripts. `off`: nobody can make one, and those that exist are refused and kept. See docs/tokens.md.'
  }),
  IDENTITY_PERSONAL_TOKENS_SCOPES: Type.Optional(Type.String({
    maxLength: 8192, description: 'Comma-separated: the scopes that they may have. Absent: those of this service without account:security, `roles`, and those of resources that any user may give to their clients.'
  })),
  IDENTITY_PERSONAL_TOKENS_ROLES: Type.Optional(Type.String({
    maxLength: 8192, description: 'Comma-separated: who may make one, by their roles. Absent: everybody.'
  })),
  IDENTITY_PERSONAL_TOKENS_RESOURCES: Type.Optional(Type.String({
    maxLength: 8192, description: 'Comma-separated: the URIs of the resources that they may be for. Absent: all.'
  }))
}

const LIMITS = {
  IDENTITY_SIGN_IN_LIMIT: Type.Union([Off, ...oidc.signInLimit.anyOf.slice(1)], {
    default: oidc.signInLimit.default, description: oidc.signInLimit.description?.replace('`false`', '`off` here or in IDENTITY_RATE_LIMIT')
  }),
  IDENTITY_RATE_LIMIT: Type.Union([Off, ...options.rateLimit.anyOf.slice(1)], {
    default: options.rateLimit.default, description: 'Password changes per minute and user; further ones get ErrLimit. `off`: unlimited.'
  }),
  IDENTITY_WRITE_LIMIT: Type.Union([Off, ...options.writeLimit.anyOf.slice(1)], {
    default: options.writeLimit.default,
    description: options.writeLimit.description?.replace(
      '`false` here or in rateLimit', '`off` here or in IDENTITY_RATE_LIMIT'
    )
  }),
  IDENTITY_CLIENTS_PER_USER: Type.Union([Off, ...options.clientsPerUser.anyOf.slice(1)], {
    default: options.clientsPerUser.default,
    description: options.clientsPerUser.description?.replace(
      '`false` here or in rateLimit', '`off` here or in IDENTITY_RATE_LIMIT'
    )
  }),
  IDENTITY_STALL_TIMEOUT: options.stallTimeout
}

const PAGES = {
  IDENTITY_NAME: oidc.name,
  IDENTITY_LOGO: oidc.logo,
  IDENTITY_LOGO_DARK: oidc.logoDark,
  IDENTITY_ACCENT: Type.Optional(Type.String({ ...oidc.accent, expects: 'a colour such as #24508f, or two with a space between' })),
  IDENTITY_HELP_ADDRESS: oidc.helpAddress,
  IDENTITY_TERMS_URL: oidc.termsUrl,
  IDENTITY_PRIVACY_URL: oidc.privacyUrl,
  IDENTITY_TEXTS: oidc.texts,
  IDENTITY_ACCOUNT_PATH: Type.Union([Off, Type.String({
    ...oidc.accountPath.anyOf[1], pattern: '^(?!/(api/v1|docs|health|openapi\\.json|\\.well-known)(/|$))(/[\\w.~-]+)+$', expects: "a path such as /account that is not among the service's own"
  })], { default: '/account', description: oidc.accountPath.description?.replace('`false`', '`off`') }),
  IDENTITY_ADMIN_PATH: Type.Optional(Type.Union([Off, Type.String({
    pattern: '^(?!/(api/v1|docs|health|openapi\\.json|\\.well-known)(/|$))(/[\\w.~-]+)+$', expects: "a path such as /admin that is not among the service's own"
  })], { description: 'Path of the console of administrators and support staff; `off`: there is none. Absent: `/admin`, and none in production. See docs/console.md.' })),
  IDENTITY_ADMIN_ACR: Type.Optional(Type.Union([Type.Literal('1'), Type.Literal('mfa'), Type.Literal('phr')], {
    expects: '1, mfa or phr',
    description: 'How strongly people must have signed in for the console: `1`, in any way; `mfa`, with two-factor authentication, which people without it set up within the sign-in; `phr`, with a passkey. Absent: `mfa` in production, otherwise `1`.'
  })),
  IDENTITY_ADMIN_NETWORKS: Type.Optional(Type.String({
    maxLength: 8192, description: 'Comma-separated: the addresses, and networks such as 10.0.0.0/8, from which the console is there, as IDENTITY_TRUST_PROXY says which address counts. Absent: all.'
  }))
}

const MAIL = {
  IDENTITY_MAIL_URL: Type.Optional(Type.String({
    maxLength: 2048, writeOnly: true, description: 'The mail server: `smtps://USER:PASSWORD@HOST`, or `smtp:` for STARTTLS. Takes IDENTITY_MAIL_FROM and IDENTITY_ISSUER. Absent: nothing is emailed.'
  })),
  IDENTITY_MAIL_URL_FILE: Type.Optional(Type.String({ description: 'A file with this URL, instead of IDENTITY_MAIL_URL.' })),
  IDENTITY_MAIL_FROM: Type.Optional(Type.String({ maxLength: 320, description: 'The sender of emails: `person@example.com` or `Name <person@example.com>`.' })),
  IDENTITY_MAIL_LOGO: options.mail.properties.logo,
  IDENTITY_SIGN_UP: Type.Boolean({ default: false, description: '`on`: people make accounts for themselves. Takes IDENTITY_MAIL_URL.' }),
  IDENTITY_SIGN_UP_DOMAINS: Type.Optional(Type.String({ description: 'Comma-separated: the domains whose addresses may sign up. Absent: all.' })),
  IDENTITY_SELF_DELETE: Type.Boolean({ default: false, description: '`on`: users may delete their own accounts.' })
}

const OTHERS = {
  IDENTITY_UPSTREAMS_FILE: Type.Optional(Type.String({
    maxLength: 4096, description: `A JSON file: an array. ${options.upstreams.description}`
  })),
  IDENTITY_MIGRATE_URL: Type.Optional(Type.String({
    maxLength: 2048, writeOnly: true, description: 'The URL of the old system that people move from: it is asked for the password of those whom an import has marked. Takes IDENTITY_MIGRATE_SECRET_FILE. Absent: none. See docs/moving.md.'
  })),
  IDENTITY_MIGRATE_SECRET_FILE: Type.Optional(Type.String({
    maxLength: 4096, description: 'A file with the secret that signs these questions: `whsec_` and 24 to 64 bytes in base64.'
  })),
  IDENTITY_MIGRATE_CREATE: Type.Boolean({
    default: false, description: '`on`: the old system is also asked about people who are not here, and they get an account.'
  }),
  IDENTITY_MIGRATE_TRUST_EMAILS: Type.Boolean({ default: false, description: '`on`: addresses count that the old system calls verified.' }),
  IDENTITY_MIGRATE_UNTIL: Type.Optional(Type.String({
    maxLength: 64, description: 'The time, in RFC 3339, from which on the old system is no longer asked. Absent: none.'
  })),
  IDENTITY_OUTBOUND_HOSTS: Type.Optional(Type.String({ description: `Comma-separated. ${options.outboundHosts.description}` })),
  IDENTITY_FORWARD_AUTH: Type.Boolean({
    default: false, description: '`on`: answers reverse proxies whether a request may pass, at `/api/v1/auth/forward`. See docs/forward-auth.md.'
  }),
  IDENTITY_FORWARD_AUTH_HEADER: Type.Optional(Type.String({
    pattern: RULE_HEADER,
    expects: RULE_HEADER_NAME,
    description: 'The header with the rule of a proxy that appends the original path, as Envoy does. The proxy drops it from outside. Takes IDENTITY_FORWARD_AUTH. Absent: there is nothing below that path.'
  })),
  IDENTITY_BRIDGE_PREFIX: Type.Union([Off, Type.String({
    pattern: '^(?!/(api/v1|docs|health|openapi\\.json|\\.well-known)(/|$))(/[\\w.~-]+)+$',
    expects: "a path such as /bridge/client that is not among the service's own"
  })], { default: '/bridge/client', description: 'Path of the bridge; `off`: no bridge.' }),
  IDENTITY_BRIDGE_UPSTREAM: Type.Optional(Type.String({
    pattern: '^https?://[^/?#@\\s]+(/[^?#@\\s]*)?$',
    expects: 'an http or https URL without credentials, query and fragment',
    description: `${BridgeOptionsSchema.properties.upstream.description} Absent: this service itself.`
  }))
}

const RECORDS = {
  IDENTITY_AUDIT_DAYS: options.auditDays,
  IDENTITY_ADDRESSES: options.addresses
}

const ROLES = {
  IDENTITY_ROLE_ADMIN: Type.String({ ...roles.admin, description: 'Name of the admin role in user records.' }),
  IDENTITY_ROLE_MANAGER: Type.String({ ...roles.manager, description: 'Name of the manager role in user records.' }),
  IDENTITY_ROLE_SERVICE: Type.String({ ...roles.service, description: 'Name of the service role in user records.' }),
  IDENTITY_ROLE_SUPPORT: Type.Optional(Type.String({ minLength: 1, description: 'Name of the role of support staff in user records. Absent: there is no such role.' })),
  IDENTITY_MANAGER_ROLES: Type.Optional(Type.Union([Off, Type.String()], {
    description: `Comma-separated. ${options.managerRoles.description} \`off\`: none.`
  }))
}

/**
 * The environment variables of the process by what they are about, with their values as config.ts converts them. `expects` is the text of an
 * error where the schema's own keywords would not be clear. `writeOnly`: no output has the value, of a URL only the host and the path.
 */
export const GROUPS = {
  Process: PROCESS,
  'Database and secret key': STORAGE,
  'Authorization server': SERVER,
  'Passwords, passkeys and factors': METHODS,
  Limits: LIMITS,
  Pages: PAGES,
  'Email and accounts': MAIL,
  'Other systems': OTHERS,
  Events: RECORDS,
  Roles: ROLES
} as const

export const EnvironmentSchema = Type.Object({
  ...PROCESS,
  ...STORAGE,
  ...SERVER,
  ...METHODS,
  ...LIMITS,
  ...PAGES,
  ...MAIL,
  ...OTHERS,
  ...RECORDS,
  ...ROLES
}, { additionalProperties: false })

export type Environment = Static<typeof EnvironmentSchema>
