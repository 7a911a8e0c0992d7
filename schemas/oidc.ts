import { Type, type Static } from '@sinclair/typebox'

const DAY = 24 * 60 * 60

/** The options of the authorization server. Defaults stand here and nowhere else. */
export const OidcOptionsSchema = Type.Object({
  issuer: Type.Optional(Type.String({
    pattern: '^https?://[^/?#@\\s]+(/[^/?#\\s]+)*$',
    description: 'The URL by which apps and browsers reach the service, with the prefix if there is one, without a slash at its end. Absent: the address it listens on.'
  })),
  name: Type.Optional(Type.String({
    minLength: 1, maxLength: 64, description: 'What the pages call the service. Absent: they tell the name of the app only.'
  })),
  accessTtl: Type.Integer({ minimum: 60, maximum: DAY, default: 3600, description: 'Seconds an access token lives.' }),
  refreshTtl: Type.Integer({ minimum: 60, maximum: 366 * DAY, default: 30 * DAY, description: 'Seconds a refresh token lives from its last use.' }),
  sessionTtl: Type.Integer({ minimum: 60, maximum: 366 * DAY, default: 14 * DAY, description: 'Seconds a browser stays signed in from its last use.' }),
  refreshGrace: Type.Integer({
    minimum: 0, maximum: 300, default: 10, description: 'Seconds in which a refresh token that was used already is answered again, for a lost answer or two tabs at once.'
  }),
  firstParty: Type.Array(Type.String({ minLength: 1 }), {
    default: [], description: "Ids of the operator's own clients: they sign users in without asking for consent."
  }),
  signInLimit: Type.Union([Type.Literal(false), Type.Integer({ minimum: 1, maximum: 1_000_000 })], {
    default: 10, description: 'Sign-ins a minute that one address may try for one account; ten times as many for an account or an address as a whole; and a hundred times as many that one address may begin. `false`: no limit.'
  })
}, { additionalProperties: false })

export type OidcOptions = Static<typeof OidcOptionsSchema>
