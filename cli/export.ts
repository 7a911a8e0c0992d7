import { stat } from 'node:fs/promises'
import { Readable, addAbortSignal } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { toCsv } from '../lib/lists/csv.ts'
import { IdentityError } from '../lib/errors.ts'
import { writeWholeFile } from '../lib/whole-file.ts'
import { UsageError } from './args.ts'
import { OPERATOR, type Context } from './command.ts'
import { nameFile, toFileError } from './file-error.ts'

/** Passes the batches on and counts what they have, with the progress on a terminal. */
export async function * watch<T> (
  batches: AsyncIterable<T[]>, total: number, what: string, { stderr, json }: Context, report: (count: number) => void
): AsyncGenerator<T[]> {
  let count = 0
  const isShown = stderr.isTTY === true && !json
  try {
    for await (const batch of batches) {
      count += batch.length
      // Some may be created meanwhile.
      const all = Math.max(total, count)
      if (isShown) stderr.write(`\r${Math.floor(100 * count / all)}%  ${count} of ${all} ${what}`)
      yield batch
    }
  } finally {
    if (isShown && count > 0) stderr.write('\n')
    report(count)
  }
}

/** Writes a file whole, or not at all. @throws ErrParam that names the file */
export async function writeNamedFile (file: string, body: Readable, signal: AbortSignal): Promise<void> {
  if (await stat(file).then((stats) => !stats.isFile(), () => false)) throw new IdentityError('ErrParam', `${nameFile(file)} exists and is not a regular file`)
  await writeWholeFile(file, (draft) => draft.writeFile(addAbortSignal(signal, body)))
    .catch((error: NodeJS.ErrnoException) => { throw error.syscall === undefined ? error : toFileError(error, file, 'written') })
}

/** `client export`: streams all clients as CSV, one batch in memory at a time. */
export async function exportClients (context: Context): Promise<object | void> {
  const { services: { clients }, args, json, stdout, signal } = context
  const file = args.required('csv')
  const toStdout = file === '-'
  if (toStdout && json) throw new UsageError('--json: cannot be combined with --csv -, which writes the CSV to stdout')

  let written = 0
  const total = await clients.count(undefined, OPERATOR)
  const batches = watch(clients.list({ limit: 0 }, OPERATOR), total, 'clients', context, (count) => { written = count })
  const body = Readable.from(toCsv(batches, { escapeFormulae: true }), { objectMode: false })
  if (toStdout) {
    await pipeline(body, stdout, { end: false, signal })
    return
  }
  await writeNamedFile(file, body, signal)
  return { file, clients: written }
}
