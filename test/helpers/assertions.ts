import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { type JWTHeaderParameters, SignJWT } from 'jose'

const TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** A key pair of a client. */
export interface TestKey { alg: string, jwk: Record<string, string>, privateKey: KeyObject }

/** A new key pair for an algorithm. */
export function createTestKey (alg: 'RS256' | 'PS256' | 'ES256' | 'EdDSA', kid?: string): TestKey {
  const { publicKey, privateKey } = alg === 'ES256'
    ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
    : alg === 'EdDSA' ? generateKeyPairSync('ed25519') : generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { alg, jwk: { ...publicKey.export({ format: 'jwk' }) as Record<string, string>, ...(kid !== undefined && { kid }) }, privateKey }
}

/** An assertion of a client, with the given claims and header in place of the usual ones. Undefined leaves one out. */
export async function assert (
  client_id: string, aud: unknown, { alg, privateKey }: Pick<TestKey, 'alg' | 'privateKey'>, claims: object = {}, header: Partial<JWTHeaderParameters> = {}
): Promise<string> {
  const iat = Math.floor(Date.now() / 1000)
  const all = { iss: client_id, sub: client_id, aud, jti: randomUUID(), iat, exp: iat + 60, ...claims }
  const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
  return await new SignJWT(given).setProtectedHeader({ alg, ...header }).sign(privateKey)
}

/** The form fields of an assertion. */
export const toFields = (client_assertion: string) => ({ client_assertion, client_assertion_type: TYPE })
