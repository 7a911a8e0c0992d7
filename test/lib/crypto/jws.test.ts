import { generateKeyPairSync } from 'node:crypto'
import { jwtVerify } from 'jose'
import t from 'tap'
import { signJwt } from '../../../lib/crypto/jws.ts'

/** So many that numbers of a signature are shorter than others: one of 128 has a byte less. */
const MANY = 2_000

t.test('signatures of ES256 are verified by jose, whatever the length of their numbers', async (t) => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  let zeros = 0
  for (let count = 0; count < MANY; count++) {
    const token = await signJwt({ sub: 'ann', count, name: 'Zoë' }, { alg: 'ES256', kid: 'one', typ: 'at+jwt' }, privateKey)
    const { payload, protectedHeader } = await jwtVerify(token, publicKey, { algorithms: ['ES256'] })
    if (payload.count !== count || payload.name !== 'Zoë' || protectedHeader.kid !== 'one' || protectedHeader.typ !== 'at+jwt') t.fail(`token ${count}`)
    const bytes = Buffer.from(token.split('.')[2]!, 'base64url')
    if (bytes.length !== 64) t.fail(`${bytes.length} bytes`)
    if (bytes[0] === 0 || bytes[32] === 0) zeros++
  }
  t.ok(zeros > 0, `${zeros} with a short number`)
})

t.test('signatures of RS256 are verified by jose', async (t) => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const token = await signJwt({ sub: 'ann' }, { alg: 'RS256', kid: 'one', typ: 'at+jwt' }, privateKey)
  const { payload, protectedHeader } = await jwtVerify(token, publicKey, { algorithms: ['RS256'], typ: 'at+jwt' })
  t.strictSame([payload, protectedHeader], [{ sub: 'ann' }, { alg: 'RS256', kid: 'one', typ: 'at+jwt' }])
})
