import { type Static, Type } from '@sinclair/typebox'
import { LIMITS, TimestampSchema, describe } from './common.ts'
import { SUBJECT_PATTERN } from './identity.ts'
import { type ImportLine, NAME_PATTERN } from './import.ts'
import { MOST_UPSTREAMS } from './upstream.ts'
import { ProfileSchema } from './user.ts'

const Optional = (description?: string) => Type.Optional(Type.String(description === undefined ? {} : { description }))
const Time = Type.Optional(TimestampSchema)
const Times = { created_at: TimestampSchema, expires_at: TimestampSchema }

/** The place of a sign-in, as far as the service keeps it. */
const PlaceSchema = Type.Object({ browser: Optional(), system: Optional(), address: Optional() })

/** An event as the account pages show it. */
const OwnEventSchema = Type.Object({
  id: Type.String(),
  type: Type.String(),
  time: TimestampSchema,
  failed: Type.Boolean(),
  by: Type.Union([Type.Literal('page'), Type.Literal('app'), Type.Literal('operator')]),
  address: Optional('Absent where an operator acted.'),
  method: Type.Optional(Type.Object({ kind: Type.String(), name: Optional('Of another provider.') })),
  acr: Optional('The strength of a sign-in.'),
  client: Type.Optional(Type.Object({ name: Optional() })),
  granted: Type.Optional(Type.Array(Type.String())),
  removed: Type.Optional(Type.Array(Type.String())),
  count: Type.Optional(Type.Integer())
})

const { account, created_at, modified_at, verified_at, roles, name, info, attributes } = ProfileSchema.properties

/** Everything that the service stores about a person (`GET /user/export`). */
export const OwnDataSchema = Type.Object({
  format: Type.Literal('fastify-identity/own-data/1'),
  exported_at: TimestampSchema,
  profile: Type.Object({
    user_id: Type.String(), account, name, created_at, modified_at, verified_at, expired_at: Time, disabled_at: Time, invited_at: Time, language: Optional(), roles, info, attributes
  }),
  addresses: Type.Array(Type.Object({
    address: Type.String(),
    is_account: Type.Optional(Type.Boolean()),
    verified_at: Time,
    former_until: Type.Optional(describe(
      TimestampSchema, 'Of an earlier address: until when an emailed link can bring it back.'
    ))
  })),
  ways: Type.Array(Type.Object({
    kind: Type.String(), name: Optional(), added_at: Time, last_used_at: Time, codes_left: Type.Optional(Type.Integer())
  }), { description: 'How the person proves who they are.' }),
  identities: Type.Array(Type.Object({
    kind: Type.String(), name: Optional(), added_at: TimestampSchema, last_used_at: Time, upstream: Optional(), issuer: Optional(), subject: Optional()
  }), { description: 'Identities at other providers.' }),
  browsers: Type.Array(Type.Object({
    place: PlaceSchema,
    signed_in_at: TimestampSchema,
    last_used_at: TimestampSchema,
    console_used_at: Time,
    expires_at: TimestampSchema,
    clients: Type.Array(Type.String())
  }), { description: 'Browsers in which the person is signed in, and the apps that they signed in to there.' }),
  apps: Type.Array(Type.Object({
    session_id: Type.String(), client_id: Type.String(), client_name: Type.String(), scopes: Type.Array(Type.String()), resources: Type.Array(Type.String()), place: Type.Optional(PlaceSchema), last_used_at: TimestampSchema, ...Times
  }), { description: 'Sessions of apps that act for the person, and what each may do.' }),
  tokens: Type.Array(Type.Object({
    client_id: Type.String(),
    service: Type.Optional(Type.Literal(true, { description: 'A service token of a client of the person.' })),
    personal: Type.Optional(Type.Literal(true, { description: 'A personal access token.' })),
    name: Optional(),
    scopes: Type.Optional(Type.Array(Type.String())),
    resource: Optional(),
    ...Times,
    last_used_at: Time,
    last_used_from: Optional('The address of that request, as far as the service keeps it.')
  }), { description: "Access tokens that belong to no session, personal access tokens, and service tokens of the person's clients, without the tokens themselves." }),
  clients: Type.Array(Type.Object({}, { additionalProperties: true }), {
    description: 'Clients that the person has registered, without their secrets, as in `GET /client/{clientId}`.'
  }),
  links: Type.Array(Type.Object({
    purpose: Type.String(), mailed: Type.Boolean(), address: Optional(), client_id: Optional(), ...Times
  }), { description: 'Links that can still be used, without the links themselves.' }),
  events: Type.Array(OwnEventSchema, { description: 'Events of the account, the oldest first.' }),
  client_events: Type.Array(OwnEventSchema, { description: "Events of the person's clients that acted for themselves." })
}, { title: 'OwnData' })

/** The format of lines with hashes. */
export const EXPORT_FORMAT = 'fastify-identity/user/1'

const closed = { additionalProperties: false } as const
const Stamp = Type.String({ maxLength: 64 })
const Short = Type.String({ maxLength: LIMITS.id })
const NAME = 256

/** The id of an upstream. */
const UPSTREAM_PATTERN = '^[a-z0-9-]{1,32}$'

/** The most roles that the answers of an upstream have given a person. */
const MOST_CLAIMED = 1000

/** A way to prove who one is, with what proves it. */
const KeptWaySchema = Type.Object({
  id: Type.String({ pattern: '^[0-9A-Za-z]{1,64}$' }),
  kind: Type.Union([Type.Literal('passkey'), Type.Literal('totp'), Type.Literal('recovery'), Type.Literal('upstream')]),
  at: Stamp,
  key: Type.Optional(Type.String({ pattern: '^[\\w-]{43}$' })),
  uv: Type.Optional(Type.Boolean()),
  rk: Type.Optional(Type.Boolean()),
  rp: Type.Optional(Type.String({ maxLength: NAME })),
  upstream: Type.Optional(Short),
  name: Type.Optional(Type.String({ maxLength: NAME })),
  material: Type.Object({}, { additionalProperties: true }),
  seed: Type.Optional(Type.String({ pattern: '^[A-Z2-7]{16,104}$', description: 'The seed of an authenticator app, in base32.' })),
  codes_key: Type.Optional(Type.String({ pattern: '^[\\w-]{43}$', description: 'The key of a set of backup codes that has a salt, as base64url.' })),
  created_at: Stamp,
  last_used_at: Type.Optional(Stamp)
}, closed)
export type KeptWay = Static<typeof KeptWaySchema>

/** The most lost identities of a person: eight of each upstream that there may be, and of as many that there were. */
const MOST_HISTORY = 16 * MOST_UPSTREAMS

const LostIdentitySchema = Type.Object({
  upstream: Type.Optional(Short),
  issuer: Type.Optional(Type.String({ maxLength: 512 })),
  key: Type.Optional(Type.String({ pattern: '^[\\w-]{43}$' })),
  undone: Type.Optional(Type.Literal(true))
}, closed)

/** Of each upstream that has given roles by its map, its last answer. */
const ClaimedRolesSchema = Type.Record(Type.String({ pattern: UPSTREAM_PATTERN }), Type.Object({
  at: Stamp,
  roles: Type.Array(Short, { maxItems: MOST_CLAIMED }),
  kept: Type.Optional(Type.Literal(true))
}, closed), { ...closed, maxProperties: 2 * MOST_UPSTREAMS })

/** What only an export of this service knows of a person. */
export const KeptSchema = Type.Object({
  modified_at: Stamp,
  verified_at: Type.Optional(Stamp),
  email_verified_at: Type.Optional(Stamp),
  email_verified_by: Type.Optional(Type.String({ pattern: UPSTREAM_PATTERN })),
  disabled_at: Type.Optional(Stamp),
  invited_at: Type.Optional(Stamp),
  invited_by: Type.Optional(Short),
  language: Type.Optional(Type.String({ maxLength: 64 })),
  language_chosen: Type.Optional(Type.Boolean()),
  enrol_ticket: Type.Optional(Short),
  operator_password: Type.Optional(Type.Boolean()),
  link_undone: Type.Optional(Type.Boolean()),
  lost_identities: Type.Optional(Type.Array(LostIdentitySchema, { maxItems: MOST_HISTORY })),
  expected_identities: Type.Optional(Type.Array(Type.Object({
    upstream: Short, subject: Type.String({ pattern: SUBJECT_PATTERN })
  }, closed), { maxItems: MOST_UPSTREAMS })),
  rejoined_at: Type.Optional(Stamp),
  claimed_roles: Type.Optional(ClaimedRolesSchema),
  held_by: Type.Optional(Short),
  imported: Type.Optional(Type.Object({
    source: Type.String({ pattern: NAME_PATTERN }), run: Type.String({ pattern: NAME_PATTERN }), untouched: Type.Boolean()
  }, closed)),
  ways: Type.Optional(Type.Array(KeptWaySchema, { maxItems: 32 }))
}, closed)
export type Kept = Static<typeof KeptSchema>

/** A person with what proves who they are: a line of `user export --with-hashes`. */
export type KeptLine = { format: typeof EXPORT_FORMAT } & ImportLine & { kept: Kept }
