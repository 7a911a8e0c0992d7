import { pbkdf2Sync } from 'node:crypto'
import { HashError, isEqual, readDigest, readSalt } from './encoding.ts'
import type { Scheme } from './scheme.ts'

/** Iterations per millisecond and block. */
const SPEED: Record<string, number> = { sha1: 2_000, sha256: 1_900, sha512: 750 }

/** Bytes of a block: one more block is as much work again. */
const BLOCK: Record<string, number> = { sha1: 20, sha256: 32, sha512: 64 }

export const PBKDF2: Scheme = {
  name: 'pbkdf2',
  pattern: /^\$pbkdf2(?:-(?<hash>sha1|sha256|sha512))?\$(?<rounds>\d{1,9})\$(?<salt>[\w+/.=]*)\$(?<digest>[\w+/.=]+)$/d,
  read (groups) {
    // Passlib leaves SHA-1 out of the name.
    const hash = groups['hash'] ?? 'sha1'
    const rounds = Number(groups['rounds'])
    if (rounds < 1) throw new HashError('the number of iterations must be at least 1')
    const salt = readSalt(groups['salt'] ?? '')
    const digest = readDigest(groups['digest'] ?? '')
    return {
      work: rounds * Math.ceil(digest.length / BLOCK[hash]!) / SPEED[hash]!,
      verify: (password) => isEqual(pbkdf2Sync(password, salt, rounds, digest.length, hash), digest)
    }
  }
}
