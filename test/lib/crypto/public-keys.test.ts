import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { type PublicKey, isWithinBounds, listAlgorithms, listCandidates, readPublicKeys } from '../../../lib/crypto/public-keys.ts'
import { createTestKey } from '../../helpers/assertions.ts'

const encode = (value: bigint) => {
  const hex = value.toString(16)
  return Buffer.from(hex.length % 2 === 1 ? `0${hex}` : hex, 'hex').toString('base64url')
}
const toModulus = (bits: number) => encode((1n << BigInt(bits - 1)) + 1n)
const rsa = (bits: number, e = 65537n): PublicKey => ({ kty: 'RSA', n: toModulus(bits), e: encode(e) })

t.test('an RSA key has 2048 to 4096 bits, and an odd exponent from 3 to 32 bits: where it comes in, and where it is read', async (t) => {
  const inside: Record<string, PublicKey> = {
    'the usual one': createTestKey('RS256').jwk,
    '2048 bits': rsa(2048),
    '4096 bits': rsa(4096),
    'an exponent of 3': rsa(2048, 3n),
    'an exponent of 32 bits': rsa(2048, 0xffffffffn),
    'zeros before the numbers': { kty: 'RSA', n: Buffer.concat([Buffer.alloc(600), Buffer.from(toModulus(2048), 'base64url')]).toString('base64url'), e: 'AAAAAAAAAQAB' }
  }
  const outside: Record<string, PublicKey> = {
    '2047 bits': rsa(2047),
    '4097 bits': rsa(4097),
    '16384 bits': rsa(16_384),
    'zeros before too few bits': { kty: 'RSA', n: Buffer.concat([Buffer.alloc(200), Buffer.from(toModulus(1024), 'base64url')]).toString('base64url'), e: 'AQAB' },
    'an exponent of 33 bits': rsa(2048, 0x100000001n),
    'an exponent as long as the modulus': rsa(3072, (1n << 3070n) + 1n),
    'an exponent of 1': rsa(2048, 1n),
    'an even exponent': rsa(2048, 65536n)
  }
  for (const [name, key] of Object.entries(inside)) {
    t.ok(isWithinBounds(key), name)
    t.strictSame(listAlgorithms(key), ['RS256', 'PS256'], name)
    t.equal(readPublicKeys({ keys: [key] }).length, 1, name)
  }
  for (const [name, key] of Object.entries(outside)) {
    t.notOk(isWithinBounds(key), name)
    t.strictSame(listAlgorithms(key), [], name)
    t.throws(() => readPublicKeys({ keys: [createTestKey('ES256').jwk, key] }), { name: 'KeyError', message: /^keys\[1\] must be an RSA/ }, name)
  }
  t.match(readPublicKeys({ keys: [generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })] }), [{ crv: 'Ed25519' }], 'other types have one cost')
})

t.test('a signature is tried with the key of its kid, and without one with the two newest of its algorithm', async (t) => {
  const at = (year: number) => `${year}-01-01T00:00:00.000Z`
  const key = (kid: string, year: number, jwk = createTestKey('ES256').jwk) => ({ id: kid, jwk: { ...jwk, kid }, created_at: at(year) })
  const shared = rsa(2048)
  const keys = [key('a', 2020), key('b', 2024), key('c', 2022), key('rsa', 2026, shared), key('d', 2024)]
  const list = (header: object) => listCandidates(keys, header).map(({ id }) => id)
  t.strictSame(list({ alg: 'ES256' }), ['d', 'b'], 'of two that came together the last one first')
  t.strictSame(list({ alg: 'ES256', kid: 'a' }), ['a'])
  t.strictSame(list({ alg: 'RS256' }), ['rsa'])
  for (const header of [{ alg: 'ES256', kid: 'rsa' }, { alg: 'none' }, { alg: 7 }, {}, { alg: 'ES256', kid: 7 }, { alg: 'ES256', kid: null }]) t.strictSame(list(header), [], JSON.stringify(header))
  const same = Array.from({ length: 5 }, (_, index) => ({ ...key('same', 2020 + index, shared), id: String(index) }))
  t.strictSame(listCandidates(same, { alg: 'PS256', kid: 'same' }).map(({ id }) => id), ['4', '3'], 'a document may give five keys one kid')
})
