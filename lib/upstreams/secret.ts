import { type KeyObject, createPrivateKey, sign } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Upstream } from '../../schemas/upstream.ts'

/** Seconds for which a client secret of Apple is good. It is made for each sign-in. */
const APPLE_LIFE = 300

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** The client secret of Apple: a JWT, signed with the key of the team. */
export function signAppleSecret (
  key: KeyObject, { keyId, teamId, clientId }: Pick<Upstream, 'keyId' | 'teamId' | 'clientId'>, audience: string, now: number
): string {
  const iat = Math.floor(now / 1000)
  const input = `${encode({ alg: 'ES256', kid: keyId })}.${encode({ iss: teamId, sub: clientId, aud: audience, iat, exp: iat + APPLE_LIFE })}`
  return `${input}.${sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

/** The curves of WebCrypto, by the names of OpenSSL. */
const CURVES: Readonly<Record<string, string>> = { prime256v1: 'P-256', secp384r1: 'P-384', secp521r1: 'P-521' }

/** The algorithm of a private key in WebCrypto, for private_key_jwt. */
function findAlgorithm ({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): Parameters<KeyObject['toCryptoKey']>[0] {
  if (type === 'ec') return { name: 'ECDSA', namedCurve: CURVES[details?.namedCurve ?? ''] ?? '' }
  return type === 'rsa' ? { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' } : { name: 'Ed25519' }
}

/** The private key of an upstream. */
export async function readKey (path: string): Promise<KeyObject> {
  return createPrivateKey(await readFile(path, 'utf8'))
}

export const toWebKey = (key: KeyObject) => key.toCryptoKey(findAlgorithm(key), false, ['sign'])

/** The client secret. Its file is read each time, so that a new secret needs no restart. */
export async function readSecret ({ clientSecret, clientSecretFile = '' }: Upstream): Promise<string> {
  return clientSecret ?? (await readFile(clientSecretFile, 'utf8')).trim()
}
