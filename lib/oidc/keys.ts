import { createHmac, generateKeyPair, hash, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import type { Clock } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { type Document, DuplicateKeyError, type Store } from '../store/port.ts'

const ID = 'oidc'
/** Generations that a rotation retains in addition to the new one: that in use, and the one before it, whose signatures still verify. */
const RETAINED = 2
/**
 * Milliseconds between a new key's publication and its first use. By then every replica has noticed it, so no replica
 * publishes a key set that lacks a key in use.
 */
export const PUBLISHED_BEFORE_USE = 60_000
const RSA_BITS = 2048

/** A private key as a JSON Web Key (RFC 7517). */
interface SigningKey {
  kid: string
  kty: string
  alg: string
  use: string
  [member: string]: string
}

/** The keys that one rotation creates. */
interface Generation {
  /** Start of use, in milliseconds since the epoch. */
  since: number
  signing: SigningKey
  /** Signs cookies. */
  cookie: string
}

/** The stored keys: one document, so that of two processes that create or rotate them at once only one succeeds. */
interface KeysRecord extends Document {
  revision: number
  /** `Secrets` as JSON, sealed under the configured secret key. */
  sealed: string
}

/** The current keys. */
export interface KeyRing {
  /** Changes whenever the keys do. */
  readonly version: string
  /** The key in use comes first; all are published. */
  readonly signing: SigningKey[]
  /** The key in use comes first; all are accepted. */
  readonly cookies: string[]
  /** 32 bytes, for DPoP nonces (RFC 9449, 8). */
  readonly nonceSecret: Buffer
  /** The HMAC of a user code, under which it is stored: the code is too short for a plain hash. */
  nameUserCode (code: string): string
}

const generate = promisify(generateKeyPair)

async function createGeneration (since: number): Promise<Generation> {
  const { privateKey } = await generate('rsa', { modulusLength: RSA_BITS })
  const jwk = privateKey.export({ format: 'jwk' }) as Record<string, string>
  // The key's thumbprint (RFC 7638).
  const kid = hash('sha256', JSON.stringify({ e: jwk.e, kty: jwk.kty, n: jwk.n }), 'base64url')
  return {
    since,
    signing: { ...jwk, kty: 'RSA', alg: 'RS256', use: 'sig', kid },
    cookie: randomBytes(32).toString('base64url')
  }
}

/** `nonce` is for DPoP nonces, `codes` the key of the user codes' HMAC. */
interface Secrets { generations: Generation[], nonce: string, codes: string }

function createSecrets (): Omit<Secrets, 'generations'> {
  return { nonce: randomBytes(32).toString('base64url'), codes: randomBytes(32).toString('base64url') }
}

/** Signing keys and other secrets of the authorization server: created at first use, stored sealed. */
export function createKeys ({ store, box, now }: { store: Store, box: SecretBox, now: Clock }) {
  const records = store.collection<KeysRecord>('keys')

  const seal = (secrets: Secrets) => box.seal(JSON.stringify(secrets), ID)
  const open = (record: KeysRecord) => JSON.parse(box.open(record.sealed, ID)) as Secrets

  async function readOrCreate (): Promise<KeysRecord> {
    const existing = await records.get(ID)
    if (existing !== null) return existing
    const created: KeysRecord = {
      id: ID,
      revision: 0,
      sealed: seal({ ...createSecrets(), generations: [await createGeneration(0)] })
    }
    try {
      await records.insert(created)
      return created
    } catch (error) {
      // Another replica created them at the same time: use its keys.
      const first = error instanceof DuplicateKeyError ? await records.get(ID) : null
      if (first === null) throw error
      return first
    }
  }

  return {
    /** Reads the keys; creates them when there are none. */
    async load (): Promise<KeyRing> {
      const record = await readOrCreate()
      const { generations, nonce, codes } = open(record)
      const time = now()
      const ready = generations.filter(({ since }) => since <= time)
      const ordered = [...ready, ...generations.filter(({ since }) => since > time)]
      return {
        version: `${record.revision}:${ready.length}`,
        signing: ordered.map(({ signing }) => signing),
        cookies: ordered.map(({ cookie }) => cookie),
        nonceSecret: Buffer.from(nonce, 'base64url'),
        nameUserCode: (code) => createHmac('sha256', codes).update(code).digest('base64url')
      }
    },

    /**
     * Creates a new signing key. It is published at once and used after PUBLISHED_BEFORE_USE; the previous key stays
     * published.
     * @param dropFormer replaces all keys and secrets, and uses the new ones at once: for leaked keys
     * @returns the new key's id, and the start of its use in milliseconds since the epoch
     */
    async rotate ({ dropFormer = false }: { dropFormer?: boolean } = {}): Promise<{ kid: string, since: number }> {
      for (;;) {
        const record = await readOrCreate()
        const secrets = open(record)
        const next = await createGeneration(dropFormer ? now() : now() + PUBLISHED_BEFORE_USE)
        const pending = secrets.generations.filter(({ since }) => since > now())
        const generations = [next, ...pending, ...secrets.generations.filter(({ since }) => since <= now()).slice(0, RETAINED)]
        const replaced = dropFormer ? { ...createSecrets(), generations: [next] } : { ...secrets, generations }
        const updated = await records.update(
          ID, { set: { sealed: seal(replaced) }, increment: { revision: 1 } }, { equal: { revision: record.revision } }
        )
        if (updated !== null) return { kid: next.signing.kid, since: next.since }
      }
    }
  }
}
