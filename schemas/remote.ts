import { Type, type Static } from '@sinclair/typebox'
import { OptionsSchema } from './options.ts'

/** The options of the remote plugin that are plain data. Defaults stand here and nowhere else. */
export const RemoteOptionsSchema = Type.Object({
  upstream: Type.Optional(Type.String({
    minLength: 1, description: 'Base URL of the service, http or https; `/api/v1/auth/tokeninfo` is added to its path.'
  })),
  issuer: Type.Optional(Type.String({
    minLength: 1,
    description: "Instead of `upstream`: the service's issuer identifier. Its metadata, read at the first request, tell where to ask."
  })),
  cacheTtl: Type.Integer({
    minimum: 0, maximum: 300_000, default: 1_000, description: 'Milliseconds an answer is used again; a revoked token is good for as long at most. 0: none is.'
  }),
  staleTtl: Type.Integer({
    minimum: 0, maximum: 86_400_000, default: 0, description: 'While the service cannot be asked, a good answer is used until it is so many milliseconds old. 0: none is.'
  }),
  cacheSize: Type.Integer({
    minimum: 1, maximum: 1_000_000, default: 10_000, description: 'Good answers kept at most, of 4 KiB each on average; and as many bad ones.'
  }),
  timeout: Type.Integer({
    minimum: 1, maximum: 60_000, default: 5_000, description: 'Milliseconds the service has for an answer, the wait for a connection included.'
  }),
  maxConnections: Type.Integer({
    minimum: 1, maximum: 65_535, default: 16, description: 'Connections to the service at most; requests past them wait.'
  }),
  roles: OptionsSchema.properties.roles
}, { additionalProperties: false })

export type RemoteSettings = Static<typeof RemoteOptionsSchema>
