import type { AuthenticationResponseJSON, AuthenticatorTransport, RegistrationResponseJSON } from '@simplewebauthn/server'

/** Characters of a message of a browser, which is JSON. Without an attestation it has about 2000. */
export const MESSAGE_LENGTH = 8192

/** Characters of a credential id in base64url: 1023 bytes (WebAuthn, 5.8.3). */
const ID_LENGTH = 1364

const MOST_TRANSPORTS = 10

const BASE64URL = /^[\w-]+$/

type Fields = Record<string, unknown>

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)

const isBase64Url = (value: unknown): value is string => typeof value === 'string' && BASE64URL.test(value)

function parse (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** What a browser has signed (WebAuthn, 5.8.1), as far as it is read here. The library reads the rest. */
function readClientData (response: Fields): { challenge: string } | null {
  if (!isBase64Url(response['clientDataJSON'])) return null
  const data = parse(Buffer.from(response['clientDataJSON'], 'base64url').toString())
  // Our pages cannot be framed, so a ceremony within a frame of another site is none of ours.
  if (!isFields(data) || typeof data['challenge'] !== 'string' || (data['crossOrigin'] ?? false) !== false) return null
  return { challenge: data['challenge'] }
}

/** Whether a new passkey is discoverable (WebAuthn, 10.1.3), as the browser says. */
function readDiscoverable (results: unknown): boolean | undefined {
  const properties = isFields(results) ? results['credProps'] : undefined
  const rk = isFields(properties) ? properties['rk'] : undefined
  return typeof rk === 'boolean' ? rk : undefined
}

/** A credential as a browser sends it, with its challenge. Null for anything else. */
function read (text: string, fields: readonly string[]): { id: string, response: Fields, extensions: unknown, challenge: string } | null {
  const message = text.length > MESSAGE_LENGTH ? null : parse(text)
  if (!isFields(message) || !isFields(message['response'])) return null
  const { id, rawId, type, response } = message
  if (!isBase64Url(id) || id.length > ID_LENGTH || rawId !== id || type !== 'public-key') return null
  const data = readClientData(response)
  if (data === null || !fields.every((field) => isBase64Url(response[field]))) return null
  return { id, response, extensions: message['clientExtensionResults'], ...data }
}

/** What an authenticator answers when it signs a challenge. */
export interface Assertion { id: string, challenge: string, userHandle?: string, json: AuthenticationResponseJSON }

/** What an authenticator answers when it makes a passkey. */
export interface Attestation {
  id: string
  challenge: string
  transports: string[]
  /** Whether the device finds the passkey without its id. Undefined where the browser does not say. */
  rk: boolean | undefined
  json: RegistrationResponseJSON
}

/** Reads an assertion. Null for anything else. */
export function readAssertion (text: string): Assertion | null {
  const message = read(text, ['authenticatorData', 'signature'])
  if (message === null) return null
  const { id, challenge, response: { clientDataJSON, authenticatorData, signature, userHandle } } = message as typeof message & { response: Record<string, string> }
  if (userHandle !== undefined && !isBase64Url(userHandle)) return null
  const response = { clientDataJSON: clientDataJSON!, authenticatorData: authenticatorData!, signature: signature! }
  return { id, challenge, ...(userHandle !== undefined && { userHandle }), json: { id, rawId: id, type: 'public-key', response, clientExtensionResults: {} } }
}

/** Reads an attestation. Null for anything else. Transports are kept as they were sent: browsers know more of them than we do. */
export function readAttestation (text: string): Attestation | null {
  const message = read(text, ['attestationObject'])
  if (message === null) return null
  const { id, challenge, response: { clientDataJSON, attestationObject, transports = [] } } = message
  if (!Array.isArray(transports) || transports.length > MOST_TRANSPORTS) return null
  if (!transports.every((one): one is string => typeof one === 'string' && /^[\w-]{1,32}$/.test(one))) return null
  const response = { clientDataJSON: String(clientDataJSON), attestationObject: String(attestationObject), transports: transports as AuthenticatorTransport[] }
  return {
    id,
    challenge,
    transports,
    rk: readDiscoverable(message.extensions),
    json: { id, rawId: id, type: 'public-key', response, clientExtensionResults: {} }
  }
}

/** An attestation object of the format `none` (WebAuthn, 8.7), in CBOR. */
export function toUnattested (authData: Uint8Array): string {
  const text = (word: string) => [0x60 + word.length, ...Buffer.from(word)]
  const length = [0x59, authData.length >> 8, authData.length & 0xff]
  return Buffer.from([0xa3, ...text('fmt'), ...text('none'), ...text('attStmt'), 0xa0, ...text('authData'), ...length, ...authData]).toString('base64url')
}
