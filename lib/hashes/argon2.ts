import { type Argon2Algorithm, argon2Sync } from 'node:crypto'
import { HashError, isEqual, readDigest, readSalt } from './encoding.ts'
import type { Scheme } from './scheme.ts'

/** KiB of memory times passes, per millisecond. */
const SPEED = 300

/** The most KiB of memory. */
const MEMORY = 256 * 1_024

const LANES = 8

/** Milliseconds of one pass of one lane beside others, whatever its memory: they wait for each other. */
const WAIT = 0.4

interface Parameters {
  kind: Argon2Algorithm
  memory: number
  passes: number
  lanes: number
  salt: Buffer
  length: number
}

function compute (password: string, { kind, memory, passes, lanes, salt, length }: Parameters): Buffer {
  return argon2Sync(kind, { message: password, nonce: salt, parallelism: lanes, tagLength: length, memory, passes })
}

/** The PHC string of argon2, version 1.3 (RFC 9106). */
export const ARGON2: Scheme = {
  name: 'argon2',
  pattern: /^\$(?<kind>argon2(?:id|i|d))\$v=19\$m=(?<m>\d{1,8}),t=(?<t>\d{1,4}),p=(?<p>\d{1,3})\$(?<salt>[\w+/]+)\$(?<digest>[\w+/]+)$/d,
  read (groups) {
    const [memory, passes, lanes] = [Number(groups['m']), Number(groups['t']), Number(groups['p'])]
    if (memory > MEMORY) throw new HashError(`m is above ${MEMORY}`)
    if (lanes < 1 || lanes > LANES) throw new HashError(`p must be 1 to ${LANES}`)
    if (passes < 1 || memory < 8 * lanes) throw new HashError('t must be at least 1, and m at least 8 times p')
    const salt = readSalt(groups['salt'] ?? '')
    if (salt.length < 8) throw new HashError('the salt is shorter than 8 bytes')
    const digest = readDigest(groups['digest'] ?? '')
    const parameters = { kind: groups['kind'] as Argon2Algorithm, memory, passes, lanes, salt, length: digest.length }
    return {
      work: memory * passes / SPEED + (lanes > 1 ? passes * lanes * WAIT : 0),
      verify: (password) => isEqual(compute(password, parameters), digest)
    }
  }
}
