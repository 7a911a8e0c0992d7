import { createHmac, generateKeyPair, hash, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import type { Clock } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { type Document, DuplicateKeyError, type Store } from '../store/port.ts'

const ID = 'oidc'
/** Generations that are kept beside those to come: the one in use, and the one before it, whose signatures are still checked. */
const IN_USE = 2
/**
 * Milliseconds between a new key's publication and its first use. Every replica has noticed it by then, so that
 * none of them serves a key set without a key that another signs with.
 */
export const PUBLISHED_BEFORE_USE = 60_000
const RSA_BITS = 2048

/** A private key as a JSON Web Key (RFC 7517). */
export interface SigningKey {
  kid: string
  kty: string
  alg: string
  use: string
  [member: string]: string
}

/** What came into being with one rotation. */
interface Generation {
  /** Milliseconds since the epoch: it signs from then on. */
  since: number
  signing: SigningKey
  /** Signs cookies. */
  cookie: string
}

/** The keys as they are kept: one document, so that of two who make or rotate them at once one does. */
interface KeysRecord extends Document {
  revision: number
  /** Generations and the nonce secret as JSON, under the configured secret key. */
  sealed: string
}

/** The keys that count now. */
export interface KeyRing {
  /** Tells rings apart: another text means that something changed. */
  readonly version: string
  /** The one that signs first; all of them are published. */
  readonly signing: SigningKey[]
  /** The one that signs first; all of them are accepted. */
  readonly cookies: string[]
  /** 32 bytes, for DPoP nonces (RFC 9449, 8). */
  readonly nonceSecret: Buffer
  /** A name for a user code that cannot be turned back without the key: the code itself is too short for a plain hash. */
  nameUserCode (code: string): string
}

const generate = promisify(generateKeyPair)

async function makeGeneration (since: number): Promise<Generation> {
  const { privateKey } = await generate('rsa', { modulusLength: RSA_BITS })
  const jwk = privateKey.export({ format: 'jwk' }) as Record<string, string>
  // RFC 7638: the thumbprint names the key.
  const kid = hash('sha256', JSON.stringify({ e: jwk.e, kty: jwk.kty, n: jwk.n }), 'base64url')
  return {
    since,
    signing: { ...jwk, kty: 'RSA', alg: 'RS256', use: 'sig', kid },
    cookie: randomBytes(32).toString('base64url')
  }
}

interface Kept { generations: Generation[], nonce: string, codes: string }

/** Signing keys and what else the authorization server must keep secret: made at first need, sealed in the store. */
export function createKeys ({ store, box, now }: { store: Store, box: SecretBox, now: Clock }) {
  const records = store.collection<KeysRecord>('keys')

  const seal = (kept: Kept) => box.seal(JSON.stringify(kept), ID)
  const open = (record: KeysRecord) => JSON.parse(box.open(record.sealed, ID)) as Kept

  async function readOrMake (): Promise<KeysRecord> {
    const known = await records.get(ID)
    if (known !== null) return known
    const made: KeysRecord = {
      id: ID,
      revision: 0,
      sealed: seal({
        generations: [await makeGeneration(0)],
        nonce: randomBytes(32).toString('base64url'),
        codes: randomBytes(32).toString('base64url')
      })
    }
    try {
      await records.insert(made)
      return made
    } catch (error) {
      // Of two replicas that start at once the id lets one in; the other takes its keys.
      const first = error instanceof DuplicateKeyError ? await records.get(ID) : null
      if (first === null) throw error
      return first
    }
  }

  return {
    /** The ring, made when there is none. */
    async load (): Promise<KeyRing> {
      const record = await readOrMake()
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
     * Makes a new signing key. It is published at once and signs after PUBLISHED_BEFORE_USE; the one that it
     * follows stays published.
     * @returns the new key's id, and when it begins to sign, in milliseconds since the epoch
     */
    async rotate (): Promise<{ kid: string, since: number }> {
      for (;;) {
        const record = await readOrMake()
        const kept = open(record)
        const next = await makeGeneration(now() + PUBLISHED_BEFORE_USE)
        const pending = kept.generations.filter(({ since }) => since > now())
        const generations = [next, ...pending, ...kept.generations.filter(({ since }) => since <= now()).slice(0, IN_USE)]
        const moved = await records.update(
          ID, { set: { sealed: seal({ ...kept, generations }) }, increment: { revision: 1 } }, { equal: { revision: record.revision } }
        )
        if (moved !== null) return { kid: next.signing.kid, since: next.since }
      }
    }
  }
}

export type Keys = ReturnType<typeof createKeys>
