import type { CustomClaims } from '../schemas/claims.ts'
import { type Args, UsageError, repeated } from './args.ts'

/** The flag for claims of the operator's own. */
export const claimFlag = (places: string, more = '') => repeated(
  'NAME=FROM:PLACES', `A claim about the user, from their attributes, and where it goes (${places}), such as tenant=attributes.tenant:introspection,jwt`, more
)

/** Reads `NAME=FROM:PLACE,PLACE`. A name has no `=`, and a path no `:`. The service checks the parts. */
function readClaim (text: string): [name: string, claim: CustomClaims[string]] {
  const [, name = '', from = '', places = ''] = /^([^=]+)=([^:]+):(.+)$/.exec(text) ?? []
  if (name === '') throw new UsageError('--claim: must be NAME=FROM:PLACES')
  return [name, { from, in: places.split(',') as CustomClaims[string]['in'] }]
}

/** The claims of the flag; undefined without it, and an empty object for one empty text. */
export function readClaimFlags (args: Args): CustomClaims | undefined {
  const given = args.all('claim')
  if (given.length === 0) return undefined
  const claims = given.length === 1 && given[0] === '' ? [] : given.map(readClaim)
  if (new Set(claims.map(([name]) => name)).size < claims.length) throw new UsageError('--claim: names a claim twice')
  return Object.fromEntries(claims)
}
