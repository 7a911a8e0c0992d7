import { createHash, createHmac } from 'node:crypto'
import { compareSync } from 'bcryptjs'
import { HashError } from './encoding.ts'
import type { Scheme } from './scheme.ts'

/** Iterations of bcryptjs per millisecond. */
const SPEED = 16

const HASH = String.raw`(?<hash>\$2[aby]\$(?<cost>\d\d)\$(?<digest>[./A-Za-z0-9]{53}))`

/** bcrypt reads 72 bytes of the password at most, and the programs that made these hashes cut it there too. */
function createBcrypt (name: string, prefix: string, prepare: (password: string) => string): Scheme {
  return {
    name,
    pattern: new RegExp(`^${prefix}${HASH}$`, 'd'),
    read ({ hash = '', cost }) {
      if (Number(cost) < 4) throw new HashError('the cost must be at least 4')
      return { work: 2 ** Number(cost) / SPEED, verify: (password) => compareSync(prepare(password), hash) }
    }
  }
}

export const BCRYPT_SCHEMES: readonly Scheme[] = [
  createBcrypt('bcrypt', '', (password) => password),
  // Django's BCryptSHA256PasswordHasher: the hexadecimal SHA-256.
  createBcrypt('bcrypt-sha256-hex', String.raw`\$bcrypt-sha256-hex`, (password) => createHash('sha256').update(password).digest('hex')),
  // WordPress 6.8 and later (wp_hash_password).
  createBcrypt('wordpress', String.raw`\$wp`, (password) => createHmac('sha384', 'wp-sha384').update(password.trim()).digest('base64'))
]
