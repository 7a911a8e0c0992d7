import type { ImportLine } from '../../../schemas/import.ts'
import { isObject, Refusal } from './source.ts'

const PBKDF2: Readonly<Record<string, 'sha1' | 'sha256' | 'sha512'>> = {
  pbkdf2: 'sha1', 'pbkdf2-sha256': 'sha256', 'pbkdf2-sha512': 'sha512'
}

type Json = Record<string, unknown>

const refusal = (reason: string): Refusal => new Refusal(reason, 'credentials')

/** Keycloak keeps the parts of a credential as JSON in texts. @throws Refusal */
export function readKeycloakJson (text: unknown): Json {
  try {
    const value: unknown = typeof text === 'string' ? JSON.parse(text) : text
    if (isObject(value)) return value
  } catch {}
  throw refusal('a credential must have secretData and credentialData')
}

/** Parameters are lists of texts. */
const pick = (parameters: Json, name: string): unknown => {
  const value = parameters[name]
  return Array.isArray(value) ? value[0] : value
}

/**
 * A password credential of Keycloak, taken apart.
 * @param credentialData the algorithm and its parameters: PBKDF2, or argon2 from 24 on
 * @param secretData hash and salt in base64
 * @throws Refusal
 */
export function readKeycloakHash (credentialData: unknown, secretData: unknown): NonNullable<ImportLine['password']> {
  const { algorithm, hashIterations, additionalParameters = {} } = readKeycloakJson(credentialData)
  const { value: hash, salt } = readKeycloakJson(secretData)
  const isComplete = typeof hash === 'string' && typeof salt === 'string' && typeof hashIterations === 'number'
  if (!isComplete) throw refusal('hash, salt or hashIterations is missing')
  const digest = typeof algorithm === 'string' && Object.hasOwn(PBKDF2, algorithm) ? PBKDF2[algorithm] : undefined
  if (digest !== undefined) return { scheme: 'pbkdf2', digest, iterations: hashIterations, salt, hash }
  if (algorithm !== 'argon2' || !isObject(additionalParameters)) throw refusal('its algorithm is unknown')
  const [type, version, memory, parallelism] = ['type', 'version', 'memory', 'parallelism'].map((name) => pick(additionalParameters, name))
  if (type !== 'id' && type !== 'i' && type !== 'd') throw refusal('its kind of argon2 is unknown')
  if (version !== '1.3') throw refusal('only version 1.3 of argon2 is supported')
  return { scheme: `argon2${type}`, memory: Number(memory), passes: hashIterations, parallelism: Number(parallelism), salt, hash }
}
