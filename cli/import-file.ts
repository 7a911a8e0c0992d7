import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { type Readable, addAbortSignal, pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { IdentityError, paramError } from '../lib/errors.ts'
import { UsageError } from './args.ts'
import type { Context } from './command.ts'
import { toCell } from './output.ts'

/** A file that is being read. */
export interface OpenFile {
  chunks: AsyncIterable<Buffer>
  /** The share that has been read, from 0 to 1. Undefined: nobody knows the size. */
  getShare (): number | undefined
}

const toCause = (error: unknown): string => `cannot be read (${(error as NodeJS.ErrnoException).code ?? 'an unknown error'})`

/** The error of a file that stands in the command without a flag: it names the file. */
const toReadError = (error: unknown, file: string): Error => new IdentityError('ErrParam', `${file === '-' ? 'stdin' : `the file ${toCell(file)}`} ${toCause(error)}`)

/** The whole text of a small file. @throws ErrParam under the name of the flag that names it */
export async function readText (field: string, file: string): Promise<string> {
  return await readFile(file, 'utf8').catch((error: unknown) => { throw paramError(field, toCause(error)) })
}

async function * read (stream: Readable, file: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of stream) yield Buffer.from(chunk as Buffer)
  } catch (error) {
    throw (error as Error).name === 'AbortError' ? error : toReadError(error, file)
  }
}

/** Opens the file of an import; `-` is stdin, and one that ends in .gz is unpacked. It ends when the command is stopped. */
export async function openFile (file: string, { stdin, signal }: Pick<Context, 'stdin' | 'signal'>): Promise<OpenFile> {
  if (file === '-') {
    if (stdin.isTTY === true) throw new UsageError('--file: stdin is a terminal; pipe the file in')
    return { chunks: read(addAbortSignal(signal, stdin), file), getShare: () => undefined }
  }
  const { size } = await stat(file).catch((error: unknown) => { throw toReadError(error, file) })
  const source = createReadStream(file)
  const getShare = () => (size === 0 ? undefined : Math.min(1, source.bytesRead / size))
  if (!file.endsWith('.gz')) return { chunks: read(addAbortSignal(signal, source), file), getShare }
  // An error of either is one of the last stream.
  const unpacked = pipeline(source, createGunzip(), () => {}) as unknown as Readable
  return { chunks: read(addAbortSignal(signal, unpacked), file), getShare }
}
