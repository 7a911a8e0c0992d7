import { createHmac, generateKeyPair, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import type { Base } from '../base.ts'
import { toThumbprint } from '../crypto/public-keys.ts'
import { JWT_MAX_TTL } from '../resources/checks.ts'
import { type Document, DuplicateKeyError } from '../store/port.ts'

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

/** The algorithms of ID and logout tokens. Each has keys of its own, which are rotated apart. */
export type SigningAlg = 'RS256' | 'ES256'

/** A signing key that one rotation creates. */
interface SigningGeneration {
  /** Start of use, in milliseconds since the epoch. */
  since: number
  signing: SigningKey
}

/** The keys that a rotation of RS256 creates. */
interface Generation extends SigningGeneration {
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
  /** The RS256 keys. That in use comes first; all are published. */
  readonly signing: SigningKey[]
  /** The ES256 keys, in the same way. */
  readonly ecSigning: SigningKey[]
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
  return {
    since,
    signing: { ...jwk, kty: 'RSA', alg: 'RS256', use: 'sig', kid: toThumbprint(jwk) },
    cookie: randomBytes(32).toString('base64url')
  }
}

async function createEcGeneration (since: number): Promise<SigningGeneration> {
  const { privateKey } = await generate('ec', { namedCurve: 'P-256' })
  const jwk = privateKey.export({ format: 'jwk' }) as Record<string, string>
  return { since, signing: { ...jwk, kty: 'EC', alg: 'ES256', use: 'sig', kid: toThumbprint(jwk) } }
}

/** Milliseconds after its last use for which a key stays published: access tokens that it has signed live that long. */
const SIGNED = JWT_MAX_TTL * 1000

/** Adds a new generation: those that wait for their use stay, and of the others the last ones, and those that may have signed a token that lives. */
function add<T extends SigningGeneration> (next: T, previous: T[], time: number): T[] {
  const used = previous.filter(({ since }) => since <= time)
  const isKept = (index: number) => index < RETAINED || (used[index - 1]?.since ?? 0) > time - SIGNED
  return [next, ...previous.filter(({ since }) => since > time), ...used.filter((_, index) => isKept(index))]
}

/** Those in use first. */
function order<T extends SigningGeneration> (generations: T[], time: number): { ready: number, ordered: T[] } {
  const ready = generations.filter(({ since }) => since <= time)
  return { ready: ready.length, ordered: [...ready, ...generations.filter(({ since }) => since > time)] }
}

/** `nonce` is for DPoP nonces, `codes` the key of the user codes' HMAC. */
interface Secrets { generations: Generation[], ec: SigningGeneration[], nonce: string, codes: string }

function createSecrets (): Omit<Secrets, 'generations' | 'ec'> {
  return { nonce: randomBytes(32).toString('base64url'), codes: randomBytes(32).toString('base64url') }
}

/** Signing keys and other secrets of the authorization server: created at first use, stored sealed. */
export function createKeys ({ store, box, now }: Pick<Base, 'store' | 'box' | 'now'>) {
  const records = store.collection<KeysRecord>('keys')

  const seal = (secrets: Secrets) => box.seal(JSON.stringify(secrets), ID)
  const open = (record: KeysRecord) => JSON.parse(box.open(record.sealed, ID)) as Secrets | Omit<Secrets, 'ec'>

  /** Writes the keys unless they have changed meanwhile. */
  const replace = async (secrets: Secrets, { revision }: KeysRecord): Promise<KeysRecord | null> =>
    await records.update(ID, { set: { sealed: seal(secrets) }, increment: { revision: 1 } }, { equal: { revision } })

  async function readOrCreate (): Promise<KeysRecord> {
    const existing = await records.get(ID)
    if (existing !== null) return existing
    const created: KeysRecord = {
      id: ID,
      revision: 0,
      sealed: seal({ ...createSecrets(), generations: [await createGeneration(0)], ec: [await createEcGeneration(0)] })
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

  /** The keys. Those of an earlier release get an ES256 key. */
  async function readComplete (): Promise<{ record: KeysRecord, secrets: Secrets }> {
    for (;;) {
      const record = await readOrCreate()
      const secrets = open(record)
      if ('ec' in secrets) return { record, secrets }
      await replace({ ...secrets, ec: [await createEcGeneration(0)] }, record)
    }
  }

  return {
    /** Reads the keys; creates them when there are none. */
    async load (): Promise<KeyRing> {
      const { record, secrets: { generations, ec, nonce, codes } } = await readComplete()
      const [rsa, curves] = [order(generations, now()), order(ec, now())]
      return {
        version: `${record.revision}:${rsa.ready}:${curves.ready}`,
        signing: rsa.ordered.map(({ signing }) => signing),
        ecSigning: curves.ordered.map(({ signing }) => signing),
        cookies: rsa.ordered.map(({ cookie }) => cookie),
        nonceSecret: Buffer.from(nonce, 'base64url'),
        nameUserCode: (code) => createHmac('sha256', codes).update(code).digest('base64url')
      }
    },

    /**
     * Creates a new signing key. It is published at once and used after PUBLISHED_BEFORE_USE; the previous key stays
     * published.
     * @param alg which keys get a new one: RS256, with the key of the cookies, or ES256
     * @param dropFormer replaces all keys of both kinds and all secrets, and uses the new ones at once: for leaked keys
     * @returns the new key's id, and the start of its use in milliseconds since the epoch
     */
    async rotate ({ alg = 'RS256', dropFormer = false }: { alg?: SigningAlg, dropFormer?: boolean } = {}): Promise<{ kid: string, since: number }> {
      for (;;) {
        const { record, secrets } = await readComplete()
        const since = dropFormer ? now() : now() + PUBLISHED_BEFORE_USE
        const rsa = dropFormer || alg === 'RS256' ? await createGeneration(since) : undefined
        const ec = dropFormer || alg === 'ES256' ? await createEcGeneration(since) : undefined
        const previous = dropFormer ? { ...createSecrets(), generations: [], ec: [] } : secrets
        const replaced = {
          ...previous,
          ...(rsa && { generations: add(rsa, previous.generations, now()) }),
          ...(ec && { ec: add(ec, previous.ec, now()) })
        }
        const next = alg === 'RS256' ? rsa : ec
        if (await replace(replaced, record) !== null) return { kid: next!.signing.kid, since }
      }
    }
  }
}
