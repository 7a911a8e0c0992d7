import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { UsageError, toggle, value } from './args.ts'
import type { Commands, Context, Result } from './command.ts'
import { watch, writeNamedFile } from './export.ts'

async function * join (batches: AsyncIterable<string[]>): AsyncGenerator<string> {
  for await (const batch of batches) yield batch.join('')
}

/** Streams all users, one batch in memory at a time. */
async function exportUsers (context: Context): Promise<Result | void> {
  const { services: { users, userLines }, args, json, stdout, signal } = context
  const withHashes = args.has('with-hashes')
  const [file, recipient] = [args.optional('out'), args.optional('seal-to')]
  if (withHashes && recipient === undefined) throw new UsageError('--with-hashes: needs --seal-to, because whoever reads the file can try the passwords')
  if (file === undefined && json) throw new UsageError('--json: needs --out, because the users go to stdout without it')
  if (file === undefined && recipient !== undefined && stdout.isTTY === true) {
    throw new UsageError('--out: is required on a terminal, because a sealed file is binary')
  }

  let written = 0
  const total = await users.count()
  const text = join(watch(userLines.write({ withHashes }), total, 'users', context, (count) => { written = count }))
  // Loaded with the library, for sealed files only.
  const bytes = recipient === undefined ? text : await (await import('../lib/export/seal.ts')).seal(text, recipient)
  const body = Readable.from(bytes, { objectMode: false })
  if (file === undefined) return await pipeline(body, stdout, { end: false, signal })
  await writeNamedFile(file, body, signal)
  return { file, users: written, sealed: recipient !== undefined, with_hashes: withHashes }
}

export const userExportCommands: Commands = {
  'user export': {
    summary: 'Write all users as lines of JSON. For another service.',
    example: 'user export --out users.ndjson',
    flags: {
      'with-hashes': toggle('With everything that proves who they are: password hashes, factors, passkeys. Needs --seal-to.'),
      'seal-to': value('KEY', 'Seal the file for the holder of this public key of age: age1...'),
      out: value('FILE', 'The file. Without it, the users go to stdout.')
    },
    creates: false,
    run: exportUsers
  }
}
