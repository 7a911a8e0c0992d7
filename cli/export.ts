import { stat } from 'node:fs/promises'
import { Readable, addAbortSignal } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Client } from '../schemas/client.ts'
import { toCsv } from '../lib/lists/csv.ts'
import { paramError } from '../lib/errors.ts'
import { writeWholeFile } from '../lib/whole-file.ts'
import { UsageError } from './args.ts'
import { OPERATOR, type Context } from './command.ts'

/** Passes the batches on and counts their clients, with the progress on a terminal. */
async function * watch (
  batches: AsyncIterable<Client[]>, total: number, { stderr, json }: Context, report: (count: number) => void
): AsyncGenerator<Client[]> {
  let count = 0
  const isShown = stderr.isTTY === true && !json
  try {
    for await (const batch of batches) {
      count += batch.length
      // Clients may be registered meanwhile.
      const all = Math.max(total, count)
      if (isShown) stderr.write(`\r${Math.floor(100 * count / all)}%  ${count} of ${all} clients`)
      yield batch
    }
  } finally {
    if (isShown && count > 0) stderr.write('\n')
    report(count)
  }
}

/** A failure of the file system is reported under the flag that named the file. */
function toParamError (error: NodeJS.ErrnoException): Error {
  return error.syscall === undefined ? error : paramError('csv', `cannot be written (${error.code})`)
}

/** `client export`: streams all clients as CSV, one batch in memory at a time. */
export async function exportClients (context: Context): Promise<object | void> {
  const { services: { clients }, args, json, stdout, signal } = context
  const file = args.required('csv')
  const toStdout = file === '-'
  if (toStdout && json) throw new UsageError('--json: cannot be combined with --csv -, which writes the CSV to stdout')
  if (!toStdout && await stat(file).then((stats) => !stats.isFile(), () => false)) throw paramError('csv', 'exists and is not a regular file')

  let written = 0
  const total = await clients.count(undefined, OPERATOR)
  const batches = watch(clients.list({ limit: 0 }, OPERATOR), total, context, (count) => { written = count })
  const body = Readable.from(toCsv(batches, { escapeFormulae: true }), { objectMode: false })
  if (toStdout) {
    await pipeline(body, stdout, { end: false, signal })
    return
  }
  await writeWholeFile(file, (draft) => draft.writeFile(addAbortSignal(signal, body)))
    .catch((error: NodeJS.ErrnoException) => { throw toParamError(error) })
  return { file, clients: written }
}
