import { Buffer } from 'node:buffer'
import { paramError } from '../errors.ts'
import { Lazy } from '../lazy.ts'
import { peek } from '../peek.ts'

// Loaded when something is sealed or opened.
const library = new Lazy(async () => await import('age-encryption'))

/** What a file begins with that age has sealed (age-encryption.org/v1). */
const HEADER = Buffer.from('age-encryption.org/v1\n')

/** Whether the first bytes of a file are those of a sealed one. */
export const isSealedFile = (bytes: Uint8Array): boolean => HEADER.equals(bytes.subarray(0, HEADER.length))

async function * encode (pieces: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) yield Buffer.from(piece)
}

/**
 * Seals text for the holder of a key, while it is written. Nobody else can read it, this service included.
 * @param recipient a public key of age: `age1...`
 * @throws ErrParam
 */
export async function seal (pieces: AsyncIterable<string>, recipient: string): Promise<AsyncIterable<Uint8Array>> {
  const { Encrypter } = await library.get()
  const encrypter = new Encrypter()
  try {
    encrypter.addRecipient(recipient)
  } catch {
    // The cause repeats what was typed, which may be a private key.
    throw paramError('seal_to', 'must be a public key of age, which begins with age1')
  }
  return await encrypter.encrypt(ReadableStream.from<Uint8Array>(encode(pieces)))
}

/**
 * Opens a sealed file, while it is read. Each piece is authentic; a file that was cut off fails at its end.
 * @param identity the text of an identity file of age: `AGE-SECRET-KEY-1...` on a line
 * @throws ErrParam
 */
export async function unseal (pieces: AsyncIterable<Uint8Array>, identity: string): Promise<AsyncIterable<Uint8Array>> {
  const { Decrypter } = await library.get()
  const keys = identity.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'))
  if (keys.length === 0) throw paramError('identity', 'has no key')
  const decrypter = new Decrypter()
  try {
    for (const key of keys) decrypter.addIdentity(key)
  } catch {
    throw paramError('identity', 'must be an identity file of age, with a key that begins with AGE-SECRET-KEY-1')
  }
  try {
    return await decrypter.decrypt(ReadableStream.from<Uint8Array>(pieces))
  } catch {
    throw paramError('identity', 'is not the key that the file is sealed for, or the file is damaged')
  }
}

/**
 * Reads a file that may be sealed.
 * @param identity the text of an identity file. Undefined: the file is not sealed
 * @throws ErrParam for a sealed file without an identity, and as `unseal`
 */
export async function * openSealed (pieces: AsyncIterable<Uint8Array>, identity: string | undefined): AsyncGenerator<Buffer> {
  const { first, readFrom } = await peek(pieces, (first) => first.length >= HEADER.length)
  if (!isSealedFile(first)) {
    for await (const piece of readFrom(0)) yield Buffer.from(piece)
    return
  }
  if (identity === undefined) throw paramError('identity', 'is required, because the file is sealed')
  const opened = await unseal(readFrom(0), identity)
  try {
    for await (const piece of opened) yield Buffer.from(piece)
  } catch (error) {
    throw (error as Error).name === 'AbortError' ? error : paramError('file', 'was cut off or changed since it was sealed')
  }
}
