import { Type, type Static } from '@sinclair/typebox'

/** The kinds of providers. `oidc` is any OpenID Connect server. */
export const UPSTREAM_KINDS = ['google', 'microsoft', 'github', 'apple', 'oidc'] as const
export type UpstreamKind = typeof UPSTREAM_KINDS[number]

/** The upstreams of an installation. */
export const MOST_UPSTREAMS = 50

const DOMAIN = '^([a-z0-9]([a-z0-9-]*[a-z0-9])?\\.)+[a-z0-9-]{2,63}$'

const Text = (description: string, more: object = {}) => Type.Optional(Type.String({ minLength: 1, maxLength: 512, ...more, description }))
const Texts = (description: string, more: object = {}) =>
  Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 253, ...more }), { minItems: 1, maxItems: 100, description }))

const Bound = (description: string) => Type.Optional(Type.Integer({ minimum: 600, maximum: 366 * 24 * 60 * 60, description }))

/** A role, as a key of an object. */
const Role = Type.String({ minLength: 1, maxLength: 256, pattern: '^(?!__proto__$)' })

/** Another provider that people sign in with. Only the configuration names them: no call of the API does. */
export const UpstreamSchema = Type.Object({
  id: Type.String({
    pattern: '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$',
    expects: 'at most 32 lower-case letters, digits and hyphens',
    description: 'Its name in URLs, events and the records of people. People who use it lose this way in when the id changes.'
  }),
  kind: Type.Union(UPSTREAM_KINDS.map((kind) => Type.Literal(kind, { expects: 'google, microsoft, github, apple or oidc' })), {
    description: '`google`, `microsoft`, `github`, `apple`, or `oidc` for any OpenID Connect server.'
  }),
  name: Text('Its name on pages. Absent: that of the kind, or the host of the issuer.', { maxLength: 64 }),
  issuer: Text('The issuer identifier of an `oidc` upstream. Of the other kinds: the origin of a national cloud or of a server of your own. Absent: the public one.', {
    pattern: '^https?://[^?#@\\s]+$', expects: 'an http or https URL without credentials, query and fragment'
  }),
  clientId: Type.String({ minLength: 1, maxLength: 512, description: 'The id under which the provider knows this service.' }),
  clientSecretFile: Text('A file with the client secret.', { maxLength: 4096 }),
  clientSecret: Text('The client secret itself, for a program that embeds the service. IDENTITY_UPSTREAMS_FILE must not have it.', { maxLength: 4096, writeOnly: true }),
  keyFile: Text('A file with a private key in PEM, instead of a secret: of Apple, or for private_key_jwt at an `oidc` upstream.', { maxLength: 4096 }),
  keyId: Text('The id of that key. Apple requires it.'),
  teamId: Text('The id of the team at Apple.'),
  create: Type.Boolean({ default: false, description: 'Whether people without an account get one with their first sign-in. Takes `signUp`.' }),
  link: Type.Union([Type.Literal('never'), Type.Literal('confirm'), Type.Literal('verified')], {
    default: 'confirm',
    description: 'Whether an identity with a proved address joins the account that has this address: `confirm`, after the person has ' +
      'signed in to that account too; `verified`, by itself, under the conditions of docs/upstreams.md; `never`.'
  }),
  emails: Type.Optional(Type.Union([Type.Literal('none'), Type.Literal('verified')], {
    description: 'Of an `oidc` upstream, whether its word counts that an address is verified. Absent: `none`.'
  })),
  domains: Texts('Only people whose proved address is in one of these domains may sign in. Absent: everybody.', {
    pattern: DOMAIN, expects: 'a domain such as example.com, in lower case'
  }),
  only: Type.Optional(Type.Boolean({
    description: 'Whether people with an address or a name in `domains`, proved or not, sign in by this upstream and by nothing else. Administrators and services are excepted.'
  })),
  rejoin: Type.Optional(Type.Object({
    until: Type.String({
      pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?Z$',
      expects: 'a time such as 2026-12-01T00:00:00Z',
      description: 'At most 30 days from now.'
    })
  }, {
    additionalProperties: false, description: 'All subjects of the provider change until then: once an account, an identity takes the place of the one before, where it would join as the first one. Never for people with a role of administrators, managers or services.'
  })),
  sessionMax: Bound('Seconds from the last answer of this upstream about a person after which their browsers ask it again, without a page where they are still signed in there. Absent: a day with `only`, and no bound without.'),
  refreshMax: Bound('The same for apps with `offline_access`: after it they get no new tokens until the person has signed in with the upstream again, in whatever browser or app.'),
  tokenMax: Bound('Of an upstream with `only`: seconds from its last answer about a person after which their personal access tokens are refused, until the person has signed in with it again. Absent: 30 days.'),
  tenants: Texts('Of Microsoft, and required there: the ids of the tenants whose people may sign in, or `all`.', {
    pattern: '^(all|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$', expects: 'the id of a tenant in lower case, or all'
  }),
  factors: Type.Optional(Type.Object({ acr: Texts('Values of the claim `acr`.'), amr: Texts('Values of the claim `amr`.') }, {
    additionalProperties: false, minProperties: 1, description: 'The values of `acr` and `amr` with which a sign-in there counts as one with two-factor authentication.'
  })),
  claims: Type.Optional(Type.Object({ name: Text('The claim with the name.'), email: Text('The claim with the address.') }, {
    additionalProperties: false, description: 'Of an `oidc` upstream: the claims to read instead of `name` and `email`.'
  })),
  sync: Type.Union([Type.Literal('first'), Type.Literal('always')], {
    default: 'first', description: 'Whether the name is taken from the provider with the first sign-in, or with each one. Nothing else ever is.'
  }),
  roles: Type.Optional(Type.Object({
    claim: Type.String({ minLength: 1, maxLength: 512, description: 'The claim, or a path to it with dots.' }),
    map: Type.Record(Type.String({ minLength: 1, maxLength: 512 }), Type.Union([
      Role, Type.Array(Role, { minItems: 1, maxItems: 20 })
    ], { expects: 'a role, or up to 20 of them' }), {
      minProperties: 1, maxProperties: 500, description: 'The roles here, by the values of the claim.'
    })
  }, {
    additionalProperties: false,
    description: 'Of `oidc` and `microsoft`: the roles that people get by a claim, at each sign-in. The map owns the roles that it names.'
  })),
  roleMax: Type.Optional(Type.Integer({
    minimum: 300, maximum: 31_622_400, description: 'Seconds from the last answer for which a role by the map lasts. Absent: 30 days.'
  })),
  clients: Texts('The ids of the clients whose people may sign in by it. Absent: all, and the account pages.')
}, { additionalProperties: false })

export type Upstream = Static<typeof UpstreamSchema>

/** As it is written: fields with a default may be left out. */
export type GivenUpstream = Omit<Upstream, 'create' | 'link' | 'sync'> & Partial<Pick<Upstream, 'create' | 'link' | 'sync'>>
