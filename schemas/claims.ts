import { Type, type Static, type TLiteral } from '@sinclair/typebox'

/** Limits of claims of the operator's own. */
export const CLAIM_LIMITS = {
  /** Claims of a client, and of a resource. */
  claims: 20,
  /** Characters of a name. */
  name: 128,
  /** Characters of `from`, and the keys that it may name one within the other. */
  from: 256,
  depth: 5,
  /** Characters of a text, and items of an array. */
  text: 256,
  items: 32,
  /** Bytes of all such claims of one token or answer, as JSON. */
  bytes: 2048
} as const

/** The name of a claim. */
export const CLAIM_NAME = '^[A-Za-z][A-Za-z0-9_.:/-]*$'

/** Where a value comes from. */
export const CLAIM_SOURCE = `^attributes(?:\\.[A-Za-z0-9_-]+){1,${CLAIM_LIMITS.depth}}$`

const describeClaims = (what: string) => `Claims of the operator's own about the user, ${what}, by name. ` +
  "`from` names a value in the user's attributes, such as `attributes.tenant`, and `in` says where it goes. " +
  'Strings, numbers, booleans and arrays of them are shown; anything else, and what is too long, is left out. ' +
  'Names that standards or this service use are refused. Set by admins.'

const Claims = <T extends TLiteral[]>(places: [...T], what: string) => Type.Record(Type.String(), Type.Object({
  from: Type.String({ maxLength: CLAIM_LIMITS.from }),
  in: Type.Array(Type.Union(places), { minItems: 1, maxItems: places.length })
}, { additionalProperties: false }), { maxProperties: CLAIM_LIMITS.claims, description: describeClaims(what) })

const OF_TOKENS = [Type.Literal('introspection'), Type.Literal('jwt')] as const

export const ClientClaimsSchema = Claims(
  [Type.Literal('id_token'), Type.Literal('userinfo'), ...OF_TOKENS], 'in its ID tokens and userinfo, and of its access tokens in introspection and in JWTs'
)
export type CustomClaims = Static<typeof ClientClaimsSchema>

export const ResourceClaimsSchema = Claims([...OF_TOKENS], 'of access tokens for it, in introspection and in JWTs')

/** Where such a claim goes. */
export type ClaimPlace = CustomClaims[string]['in'][number]

/** Claims in a response. They were checked when they were written. */
export const heldClaims = <T extends typeof ClientClaimsSchema | typeof ResourceClaimsSchema>({ description = '' }: T) =>
  Type.Unsafe<Static<T>>(Type.Object({}, { additionalProperties: true, description }))
