import { Type, type Static } from '@sinclair/typebox'

/** Who may call a route: any caller, holders of a role, the user whom the path's userId names. One that holds is enough. */
export const AccessRuleSchema = Type.Object({
  any: Type.Optional(Type.Literal(true)),
  roles: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { minItems: 1 })),
  owner: Type.Optional(Type.Literal(true))
}, { additionalProperties: false, minProperties: 1 })
export type AccessRule = Static<typeof AccessRuleSchema>

const RoleName = (name: string) => Type.String({ minLength: 1, default: name })

/** The options of the identity plugin that are plain data. Defaults stand here and nowhere else. */
export const OptionsSchema = Type.Object({
  database: Type.String({
    minLength: 1,
    default: 'sqlite:data/identity.db',
    description: '`sqlite:PATH`, `sqlite::memory:` for tests, or a `mongodb://` or `mongodb+srv://` URL.'
  }),
  storeTimeout: Type.Integer({
    minimum: 100, maximum: 600_000, default: 10_000, description: 'Milliseconds one store operation may take before it fails with ErrDb.'
  }),
  secretKey: Type.Optional(Type.String({
    minLength: 1, description: '32 random bytes as base64 or hex. Client secrets are sealed under it. Absent: a key file in dataDir, made at the first run.'
  })),
  dataDir: Type.Optional(Type.String({
    minLength: 1, description: "Where the made key lies. Absent: the embedded store's folder, or `data`."
  })),
  production: Type.Boolean({ default: false, description: 'true refuses to start without secretKey.' }),
  bcryptCost: Type.Integer({ minimum: 4, maximum: 20, default: 12, description: 'Cost of a password hash; a step doubles the work.' }),
  hashQueue: Type.Integer({ minimum: 1, maximum: 100_000, default: 128, description: 'Password hashings that may wait; past it callers get ErrBusy.' }),
  prefix: Type.String({ pattern: '^(/[^/?#]+)*$', default: '', description: 'Path before `/api/v1`.' }),
  roles: Type.Object({
    admin: RoleName('admin'),
    manager: RoleName('manager'),
    service: RoleName('service')
  }, { additionalProperties: false, default: {}, description: 'The names under which the three roles are kept.' }),
  access: Type.Record(Type.String(), AccessRuleSchema, {
    default: {}, description: 'Rows of the access table to override, by operationId: `{ any: true }`, `{ roles: [...] }`, `{ owner: true }`.'
  }),
  rateLimit: Type.Union([Type.Literal(false), Type.Integer({ minimum: 1, maximum: 1_000_000 })], {
    default: 60, description: 'Password changes a minute that one user may ask for; past it ErrLimit. `false`: no limit.'
  }),
  stallTimeout: Type.Integer({
    minimum: 100, maximum: 3_600_000, default: 60_000, description: 'Milliseconds a reader of a list may take nothing before it is broken off.'
  }),
  oidc: Type.Union([Type.Literal(false), Type.Object({}, { additionalProperties: true })], {
    default: {}, description: 'The authorization server: an object of its own options, below. `false`: none, and nobody signs in.'
  }),
  openapi: Type.Boolean({ default: true, description: 'Serves `/openapi.json` and the page `/docs`.' }),
  health: Type.Boolean({ default: true, description: 'Serves `/health/live` and `/health/ready`.' })
}, { additionalProperties: false })

export type Options = Static<typeof OptionsSchema>
