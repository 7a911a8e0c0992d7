import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { type Readable, addAbortSignal, pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { UsageError } from './args.ts'
import type { Context } from './command.ts'
import { toFileError } from './file-error.ts'

/** A file that is being read. */
export interface OpenFile {
  chunks: AsyncIterable<Buffer>
  /** The share that has been read, from 0 to 1. Undefined: nobody knows the size. */
  getShare (): number | undefined
}

/** The whole text of a small file. @throws ErrParam that names the file */
export async function readText (file: string): Promise<string> {
  return await readFile(file, 'utf8').catch((error: unknown) => { throw toFileError(error, file, 'read') })
}

async function * read (stream: Readable, file: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of stream) yield Buffer.from(chunk as Buffer)
  } catch (error) {
    throw (error as Error).name === 'AbortError' ? error : toFileError(error, file, 'read')
  }
}

/** Opens the file of an import; `-` is stdin, and one that ends in .gz is unpacked. It ends when the command is stopped. */
export async function openFile (file: string, { stdin, signal }: Pick<Context, 'stdin' | 'signal'>): Promise<OpenFile> {
  if (file === '-') {
    if (stdin.isTTY === true) throw new UsageError('--file: stdin is a terminal; pipe the file in')
    return { chunks: read(addAbortSignal(signal, stdin), file), getShare: () => undefined }
  }
  const { size } = await stat(file).catch((error: unknown) => { throw toFileError(error, file, 'read') })
  const source = createReadStream(file)
  const getShare = () => (size === 0 ? undefined : Math.min(1, source.bytesRead / size))
  if (!file.endsWith('.gz')) return { chunks: read(addAbortSignal(signal, source), file), getShare }
  // An error of either is one of the last stream.
  const unpacked = pipeline(source, createGunzip(), () => {}) as unknown as Readable
  return { chunks: read(addAbortSignal(signal, unpacked), file), getShare }
}
