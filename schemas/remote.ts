import { Type, type Static } from '@sinclair/typebox'
import { LIMITS } from './common.ts'
import { OptionsSchema } from './options.ts'

/** The remote plugin's plain-data options. Defaults are defined here and nowhere else. */
export const RemoteOptionsSchema = Type.Object({
  upstream: Type.Optional(Type.String({
    minLength: 1, description: 'Base URL of the service, http or https; `/api/v1/auth/tokeninfo` is appended to its path.'
  })),
  issuer: Type.Optional(Type.String({
    minLength: 1,
    description: "Instead of `upstream`: the service's issuer identifier. Its metadata, read at the first request, name the endpoint."
  })),
  cacheTtl: Type.Integer({
    minimum: 0, maximum: 300_000, default: 1_000, description: 'Milliseconds for which an answer is cached; a revoked token is accepted for that long at most. 0: nothing is cached.'
  }),
  staleTtl: Type.Integer({
    minimum: 0, maximum: 86_400_000, default: 0, description: 'Age in milliseconds up to which a good answer is used while the service is unavailable. 0: not at all.'
  }),
  cacheSize: Type.Integer({
    minimum: 1, maximum: 1_000_000, default: 10_000, description: 'Maximum number of cached good answers, of 4 KiB each on average; and of bad ones.'
  }),
  timeout: Type.Integer({
    minimum: 1, maximum: 60_000, default: 5_000, description: 'Milliseconds for an answer, including the wait for a connection.'
  }),
  maxConnections: Type.Integer({
    minimum: 1, maximum: 65_535, default: 16, description: 'Maximum connections to the service; further requests wait.'
  }),
  jwtResources: Type.Optional(Type.Array(Type.Object({
    id: Type.String({ minLength: 1, maxLength: LIMITS.uri, description: 'The URI of the resource, as it is declared.' }),
    tokenAlg: Type.Optional(Type.Union([Type.Literal('RS256'), Type.Literal('ES256')], { description: 'As it is declared. Absent: RS256.' }))
  }, { additionalProperties: false }), {
    maxItems: LIMITS.items,
    description: 'Resources of this app whose access tokens are JWTs: they are verified here by the keys of the issuer, and the service is not asked. Needs `issuer`.'
  })),
  roles: OptionsSchema.properties.roles
}, { additionalProperties: false })

export type RemoteSettings = Static<typeof RemoteOptionsSchema>
