import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import type { CreationOptions, RequestOptions } from '../lib/ways/passkeys.ts'

/** How an authenticator answers. Tests change it to see answers refused. */
export interface AuthenticatorSettings {
  /** Whether it verifies the user, by a PIN for example. Absent: it does. */
  uv?: boolean
  /** The counter of the next answer; it goes up by one with each. Absent: there is none, and it stays 0. */
  counter?: number
  /** Whether the passkey can be backed up, and whether it is. Absent: neither. */
  backupEligible?: boolean
  backedUp?: boolean
  transports?: string[]
  /** Whether the passkey is found without its id (a discoverable one), as the browser says. Absent: it says nothing. */
  discoverable?: boolean
}

/** An attestation statement: its format, and its content in CBOR. */
interface Statement { format: string, content: Buffer }

/** What one answer says instead. */
export interface AnswerChanges extends AuthenticatorSettings {
  /** The type, the challenge and the origin that are signed, and whether it was made in a frame of another site. */
  type?: string
  challenge?: string
  origin?: string
  crossOrigin?: boolean
  /** The host that is signed. */
  rpId?: string
  /** Whether somebody was there. */
  up?: boolean
  /** Absent: that of the enrolment. Null: none. */
  userHandle?: string | null
  /** The id of another passkey. */
  id?: string
  /** Another public key of a new passkey, in COSE. */
  publicKey?: Buffer
  /** The attestation statement, which nobody has asked for. Absent: none. */
  statement?: Statement
  /** Changes the signature. */
  signature?: (signature: Buffer) => Buffer
}

const UP = 0x01
const UV = 0x04
const BE = 0x08
const BS = 0x10
const AT = 0x40

const sha256 = (content: string | Buffer) => createHash('sha256').update(content).digest()

const toText = (content: Buffer) => content.toString('base64url')

/** The public key in COSE (RFC 9053, 7.1.1): EC2, ES256, P-256, x and y. */
function toCose ({ x = '', y = '' }: { x?: string, y?: string }): Buffer {
  const head = Buffer.from('a5010203262001215820', 'hex')
  return Buffer.concat([head, Buffer.from(x, 'base64url'), Buffer.from('225820', 'hex'), Buffer.from(y, 'base64url')])
}

/** An attestation object in CBOR: of the format `none` (WebAuthn, 8.7), or with a statement. */
function toAttestationObject (authData: Buffer, { format, content }: Statement = { format: 'none', content: Buffer.from([0xa0]) }): Buffer {
  const text = (word: string) => Buffer.concat([Buffer.from([0x60 + word.length]), Buffer.from(word)])
  const length = Buffer.from([0x59, authData.length >> 8, authData.length & 0xff])
  return Buffer.concat([Buffer.from([0xa3]), text('fmt'), text(format), text('attStmt'), content, text('authData'), length, authData])
}

/**
 * An authenticator in software, with one passkey (ES256). It answers the options of the service as a browser does.
 * @param origin of the pages
 */
export function createAuthenticator (origin: string, settings: AuthenticatorSettings = {}) {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const id = toText(randomBytes(32))
  let counter = settings.counter ?? 0
  let userHandle: string | undefined

  function toFlags ({ uv = true, up = true, backupEligible = false, backedUp = false }: AnswerChanges): number {
    return (up ? UP : 0) | (uv ? UV : 0) | (backupEligible ? BE : 0) | (backedUp ? BS : 0)
  }

  function toAuthData (rpId: string, flags: number, more: Buffer[] = [], count = counter): Buffer {
    const head = Buffer.alloc(5)
    head.writeUInt8(flags)
    head.writeUInt32BE(count, 1)
    return Buffer.concat([sha256(rpId), head, ...more])
  }

  const toClientData = (type: string, challenge: string, changes: AnswerChanges) => Buffer.from(JSON.stringify({
    type: changes.type ?? type, challenge: changes.challenge ?? challenge, origin: changes.origin ?? origin, crossOrigin: changes.crossOrigin ?? false
  }))

  function next (changes: AnswerChanges): number {
    if (changes.counter !== undefined) return changes.counter
    if (settings.counter !== undefined) counter++
    return counter
  }

  const write = (response: object, given = id, more: object = {}) => JSON.stringify({ id: given, rawId: given, type: 'public-key', response, ...more })

  return {
    /** The id of the passkey, base64url. */
    id,

    /** Makes the passkey. @returns what the browser sends */
    create ({ challenge, rp, user }: Pick<CreationOptions, 'challenge' | 'rp' | 'user'>, changes: AnswerChanges = {}): string {
      userHandle = user.id
      const all = { ...settings, ...changes }
      const credential = Buffer.from(all.id ?? id, 'base64url')
      const length = Buffer.from([credential.length >> 8, credential.length & 0xff])
      const authData = toAuthData(all.rpId ?? rp.id, toFlags(all) | AT, [
        Buffer.alloc(16), length, credential, changes.publicKey ?? toCose(publicKey.export({ format: 'jwk' }))
      ], all.counter ?? 0)
      return write({
        clientDataJSON: toText(toClientData('webauthn.create', challenge, changes)),
        attestationObject: toText(toAttestationObject(authData, changes.statement)),
        transports: all.transports ?? ['internal']
      }, all.id, all.discoverable === undefined ? {} : { clientExtensionResults: { credProps: { rk: all.discoverable } } })
    },

    /** Signs a challenge. @returns what the browser sends */
    get ({ challenge, rpId }: Pick<RequestOptions, 'challenge' | 'rpId'>, changes: AnswerChanges = {}): string {
      const authData = toAuthData(changes.rpId ?? rpId, toFlags({ ...settings, ...changes }), [], next(changes))
      const clientData = toClientData('webauthn.get', challenge, changes)
      const signature = sign('sha256', Buffer.concat([authData, sha256(clientData)]), privateKey)
      const own = settings.discoverable === false ? undefined : userHandle
      const handle = changes.userHandle === undefined ? own : changes.userHandle ?? undefined
      return write({
        clientDataJSON: toText(clientData),
        authenticatorData: toText(authData),
        signature: toText(changes.signature?.(signature) ?? signature),
        userHandle: handle
      }, changes.id)
    }
  }
}

export type Authenticator = ReturnType<typeof createAuthenticator>
