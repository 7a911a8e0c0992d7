import { Decrypter, generateX25519Identity, identityToRecipient } from 'age-encryption'
import t from 'tap'
import { isSealedFile, openSealed, seal, unseal } from '../../../lib/export/seal.ts'

const PIECE = 'x'.repeat(1_000)
const PIECES = 3_000

async function collect (bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const part of bytes) parts.push(part)
  return Buffer.concat(parts)
}

t.test('a sealed file is opened by its key only, and a file that was cut off or changed fails', async (t) => {
  const [identity, other] = [await generateX25519Identity(), await generateX25519Identity()]
  const recipient = await identityToRecipient(identity)
  let read = 0
  async function * write (): AsyncGenerator<string> {
    for (; read < PIECES; read++) yield PIECE
  }
  const sealing = (await seal(write(), recipient))[Symbol.asyncIterator]()
  const first = (await sealing.next()).value as Uint8Array
  t.ok(isSealedFile(first))
  t.ok(read < PIECES / 2, 'it is written while it is read')
  const file = Buffer.concat([first, await collect({ [Symbol.asyncIterator]: () => sealing })])
  t.notOk(file.includes('xxxxxxxx'))
  const decrypter = new Decrypter()
  decrypter.addIdentity(identity)
  t.equal((await decrypter.decrypt(file)).length, PIECE.length * PIECES, 'a file of age')

  async function * pieces (bytes: Buffer): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += 5_000) yield bytes.subarray(at, at + 5_000)
  }
  const open = async (bytes: Buffer, key = identity) => await collect(await unseal(pieces(bytes), `# created: now\n# public key: ${recipient}\n${key}\n`))
  t.equal((await open(file)).length, PIECE.length * PIECES)
  await t.rejects(open(file, other), { code: 'ErrParam', message: /^identity: is not the key/ })
  await t.rejects(open(file.subarray(0, -20)), 'cut off')
  await t.rejects(open(file.subarray(0, 200 + 65_552)), 'cut off between two pieces')
  const changed = Buffer.from(file)
  changed[changed.length - 30]! ^= 1
  await t.rejects(open(changed), 'changed')
})

t.test('a wrong key is refused, and not repeated', async (t) => {
  async function * none (): AsyncGenerator<never> {}
  const identity = await generateX25519Identity()
  for (const wrong of [identity, 'age1', 'ssh-ed25519 AAAA', '']) {
    await t.rejects(seal(none(), wrong), { code: 'ErrParam', message: 'seal_to: must be a public key of age, which begins with age1' })
  }
  for (const wrong of ['AGE-SECRET-KEY-1AAAA', await identityToRecipient(identity)]) {
    await t.rejects(unseal(none(), wrong), { code: 'ErrParam', message: /^identity: must be an identity file of age/ })
  }
  await t.rejects(unseal(none(), '# nothing\n'), { code: 'ErrParam', message: 'identity: has no key' })
  t.notOk(isSealedFile(Buffer.from('{"account":"ann"}')))
})

t.test('a file that may be sealed', async (t) => {
  const identity = await generateX25519Identity()
  async function * write (...pieces: string[]): AsyncGenerator<string> { yield * pieces }
  async function * split (bytes: Buffer): AsyncGenerator<Buffer> { for (const byte of bytes) yield Buffer.from([byte]) }
  const sealed = await collect(await seal(write('one\n', 'two\n'), await identityToRecipient(identity)))
  const open = async (bytes: Buffer, key?: string) => (await collect(openSealed(split(bytes), key))).toString()
  t.equal(await open(sealed, identity), 'one\ntwo\n')
  for (const plain of ['', 'age', '{"account":"ann"}\n']) t.equal(await open(Buffer.from(plain)), plain)
  await t.rejects(open(sealed), { code: 'ErrParam', message: 'identity: is required, because the file is sealed' })
  await t.rejects(open(sealed.subarray(0, -1), identity), { code: 'ErrParam', message: 'file: was cut off or changed since it was sealed' })
})
