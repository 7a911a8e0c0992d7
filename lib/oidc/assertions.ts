import { hash } from 'node:crypto'
import { compactVerify, decodeJwt, decodeProtectedHeader, type JWTPayload, type JWK } from 'jose'
import { type SignatureHeader, listCandidates } from '../crypto/public-keys.ts'
import { defined } from '../defined.ts'
import type { ClientKey, ClientRecord } from '../records/client.ts'
import { DuplicateKeyError, type Document, type Store } from '../store/port.ts'
import type { Times } from './contract.ts'
import { ROUTES } from './routes.ts'

/** Characters of an assertion. */
const LONGEST = 8_192

/** Seconds that `iat` and `nbf` may be ahead of our clock, since clocks differ. */
export const MOST_AHEAD = 60

/** Seconds for which an assertion is good, however late its `exp` is, and those that are added for clocks that differ. */
const GOOD_FOR = 300
const CLOCK = 15

/** Milliseconds for which the keys of a document serve while its host does not answer. */
const SERVES = 7 * 24 * 60 * 60_000

/** Where a request of a client may be addressed to. */
function isAudience (aud: unknown, issuer: string, isStrict: boolean): boolean {
  // FAPI 2.0 Security Profile, 5.3.2.1-8.
  if (isStrict) return aud === issuer
  const values: unknown[] = Array.isArray(aud) ? aud : [aud]
  // With several values, another server among them could use the assertion here.
  return values.length === 1 && (values[0] === issuer || values[0] === `${issuer}/api/v1${ROUTES.token}`)
}

/** The end of an assertion whose claims are in order, in seconds. */
function findEnd (
  { iss, sub, jti, exp, iat, nbf = 0, aud }: JWTPayload,
  { id: client_id, profile }: Pick<ClientRecord, 'id' | 'profile'>,
  issuer: string,
  time: number
): number | undefined {
  if (iss !== client_id || sub !== client_id || typeof jti !== 'string' || jti === '' || !isAudience(aud, issuer, profile === 'fapi2')) return undefined
  if (typeof exp !== 'number' || typeof iat !== 'number' || typeof nbf !== 'number') return undefined
  const end = Math.min(exp, iat + GOOD_FOR) + CLOCK
  return iat <= time + MOST_AHEAD && nbf <= time + MOST_AHEAD && time < end ? end : undefined
}

/** The key that has signed. Nothing but the client's record says which keys it has: not `jwk`, `jku` or `x5c` of the header. */
export async function findSigner (keys: readonly ClientKey[], signed: string, header: SignatureHeader): Promise<ClientKey | undefined> {
  for (const key of listCandidates(keys, header)) {
    const isSigner = await compactVerify(signed, key.jwk as JWK, { algorithms: [String(header.alg)] }).then(() => true, () => false)
    if (isSigner) return key
  }
  return undefined
}

/** The clients' own assertions, by which they authenticate (RFC 7523, 3). */
export function createAssertions ({ store, times }: { store: Store, times: Times }) {
  const used = store.collection<Document & { created_at: string, expired_at: string, consumed: boolean }>('proofs')

  /** Whether this is the first use, in all processes: of several at once, the unique id lets one pass. */
  async function spend (client_id: string, jti: string, seconds: number): Promise<boolean> {
    try {
      await used.insert({ id: hash('sha256', JSON.stringify(['assertion', client_id, jti]), 'base64url'), ...times.lifetime(seconds), consumed: false })
      return true
    } catch (error) {
      if (error instanceof DuplicateKeyError) return false
      throw error
    }
  }

  return {
    /**
     * Verifies an assertion, and uses it up.
     * @returns the client's key that has signed it; undefined refuses it
     */
    async verify (
      { id, keys = [], document, profile }: Pick<ClientRecord, 'id' | 'keys' | 'document' | 'profile'>, assertion: string, issuer: string
    ): Promise<ClientKey | undefined> {
      if (assertion.length > LONGEST) return undefined
      if (document?.keys_at !== undefined && Date.parse(document.keys_at) + SERVES < times.now()) return undefined
      let header, claims
      try {
        [header, claims] = [decodeProtectedHeader(assertion), decodeJwt(assertion)]
      } catch {
        return undefined
      }
      const time = Math.floor(Date.now() / 1000)
      const end = findEnd(claims, defined({ id, profile }), issuer, time)
      // FAPI 2.0 Security Profile, 5.4.1.
      if (end === undefined || (profile === 'fapi2' && header.alg === 'RS256')) return undefined
      const key = await findSigner(keys, assertion, header)
      return key !== undefined && await spend(id, claims.jti, Math.ceil(end - time)) ? key : undefined
    }
  }
}
