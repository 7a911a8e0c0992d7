import { createCipheriv, createSecretKey, randomBytes } from 'node:crypto'
import t from 'tap'
import { GcmOpener, type Sealed } from '../../lib/gcm.ts'

const key = createSecretKey(randomBytes(32))
const opener = new GcmOpener(key)

function seal (text: string, context: string, under = key): Sealed {
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', under, iv).setAAD(Buffer.from(context))
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return { text: `head.${Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')}`, offset: 5, context }
}

const take = (length: number, from = 0) => Array.from({ length }, (_, index) => String.fromCharCode(0x21 + (from + index * 7) % 94)).join('')

t.test('what node:crypto seals opens, of every length of text and context', (t) => {
  const texts: string[] = []
  const sealed: Sealed[] = []
  for (let length = 0; length <= 64; length++) {
    for (let size = 0; size <= 64; size++) {
      texts.push(take(length, size))
      sealed.push(seal(texts.at(-1)!, take(size, length)))
    }
  }
  t.strictSame(opener.open(sealed), texts)
  t.strictSame(opener.open([]), [])
  t.strictSame(opener.open([seal('schlüssel \u{1F511}', 'a')]), ['schlüssel \u{1F511}'])
  t.end()
})

t.test('nothing opens that was altered, or sealed with another key or context', (t) => {
  const sealed = seal('0123456789abcdef0123', 'client 1')
  t.strictSame(opener.open([sealed]), ['0123456789abcdef0123'])
  const bytes = Buffer.from(sealed.text.slice(sealed.offset), 'base64url')
  const altered = Array.from({ length: bytes.length * 8 }, (_, bit) => {
    const copy = Buffer.from(bytes)
    copy[bit >> 3]! ^= 1 << (bit & 7)
    return { ...sealed, text: `head.${copy.toString('base64url')}` }
  })
  t.strictSame(opener.open(altered), altered.map(() => null), 'each bit of IV, tag and ciphertext')
  const others = ['client 2', 'client 1 ', 'client 1\0', 'client', ''].map((context) => ({ ...sealed, context }))
  const cut = [0, 1, 12, 27, 28, 47].map((length) => ({ ...sealed, text: `head.${bytes.subarray(0, length).toString('base64url')}` }))
  const foreign = seal('0123456789abcdef', 'client 1', createSecretKey(randomBytes(32)))
  t.strictSame(opener.open([...others, ...cut, foreign]), [...others, ...cut, foreign].map(() => null))
  t.end()
})

t.test('what is too long, or has a context beyond ASCII, is left closed, and its neighbours open', (t) => {
  t.strictSame(opener.open([seal('a', 'b'), seal(take(65), 'b'), seal('c', take(65)), seal(take(500), 'b'), seal('d', 'ä'), seal('e', 'f')]), ['a', null, null, null, null, 'e'])
  t.end()
})
