import { createCipheriv, scryptSync } from 'node:crypto'
import { HashError, isEqual, readDigest, readSalt } from './encoding.ts'
import type { Scheme } from './scheme.ts'

/** N times r times p, per millisecond. */
const SPEED = 1_000

/** The most bytes of memory. */
const MEMORY = 128 * 1_024 * 1_024

interface Parameters {
  work: number
  derive (password: string, salt: Buffer, length: number): Buffer
}

/** @throws HashError */
function readParameters ({ ln, r: blocks, p: lanes }: Record<string, string>): Parameters {
  const [exponent, r, p] = [Number(ln), Number(blocks), Number(lanes)]
  const N = 2 ** exponent
  if (exponent < 1 || r < 1 || p < 1) throw new HashError('ln, r and p must be at least 1')
  // RFC 7914, 2; OpenSSL refuses the others.
  if (exponent >= 16 * r) throw new HashError(`ln must be below ${16 * r}`)
  const memory = 128 * N * r
  if (memory > MEMORY) throw new HashError(`it needs ${memory / 1_048_576} MiB of memory; the limit is ${MEMORY / 1_048_576}`)
  return {
    work: N * r * p / SPEED,
    // OpenSSL needs some room besides the table.
    derive: (password, salt, length) => scryptSync(password, salt, length, { N, r, p, maxmem: memory + 128 * r * (p + 2) + 1_048_576 })
  }
}

const PARAMETERS = String.raw`ln=(?<ln>\d{1,2}),r=(?<r>\d{1,4}),p=(?<p>\d{1,4})`
const TEXT = String.raw`[\w+/.=]`

function createScrypt (name: string, prepare: (password: string) => string): Scheme {
  return {
    name,
    pattern: new RegExp(String.raw`^\$${name}\$${PARAMETERS}\$(?<salt>${TEXT}*)\$(?<digest>${TEXT}+)$`, 'd'),
    read (groups) {
      const { work, derive } = readParameters(groups)
      const salt = readSalt(groups['salt'] ?? '')
      const digest = readDigest(groups['digest'] ?? '')
      return { work, verify: (password) => isEqual(derive(prepare(password), salt, digest.length), digest) }
    }
  }
}

/**
 * Firebase's variant: the derived key encrypts the signer key of the project.
 * https://firebaseopensource.com/projects/firebase/scrypt/
 */
const FIREBASE: Scheme = {
  name: 'firescrypt',
  pattern: new RegExp(
    String.raw`^\$firescrypt\$${PARAMETERS}\$(?<salt>${TEXT}+)\$(?<digest>${TEXT}+)\$(?<separator>${TEXT}*)\$(?<signer>${TEXT}+)$`, 'd'
  ),
  read (groups) {
    const { work, derive } = readParameters(groups)
    const salt = Buffer.concat([readSalt(groups['salt'] ?? ''), readSalt(groups['separator'] ?? '')])
    const digest = readDigest(groups['digest'] ?? '')
    const signer = readDigest(groups['signer'] ?? '')
    return {
      work,
      verify (password) {
        const cipher = createCipheriv('aes-256-ctr', derive(password, salt, 32), Buffer.alloc(16))
        return isEqual(Buffer.concat([cipher.update(signer), cipher.final()]), digest)
      }
    }
  }
}

export const SCRYPT_SCHEMES: readonly Scheme[] = [
  createScrypt('scrypt', (password) => password),
  // better-auth normalizes the password first.
  createScrypt('scrypt-nfkc', (password) => password.normalize('NFKC')),
  FIREBASE
]
