import { stat } from 'node:fs/promises'
import { Readable, addAbortSignal } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SingleBar } from 'cli-progress'
import type { Client } from '../schemas/client.ts'
import { toCsv } from '../lib/lists/csv.ts'
import { paramError } from '../lib/errors.ts'
import { writeWholeFile } from '../lib/whole-file.ts'
import { UsageError } from './args.ts'
import { OPERATOR, type Context } from './command.ts'
import { printRecord } from './output.ts'

/** Passes the batches on and counts their clients, with a progress bar on a terminal. */
async function * watch (batches: AsyncIterable<Client[]>, total: number, { stderr, json }: Context, report: (count: number) => void): AsyncGenerator<Client[]> {
  const bar = stderr.isTTY === true && !json
    ? new SingleBar({ format: '{bar} {percentage}%  {value} of {total} clients  {eta_formatted} left', stream: stderr, hideCursor: true })
    : undefined
  let count = 0
  bar?.start(total, 0)
  try {
    for await (const batch of batches) {
      count += batch.length
      bar?.setTotal(Math.max(total, count))
      bar?.update(count)
      yield batch
    }
  } finally {
    bar?.stop()
    report(count)
  }
}

/** A failure of the file system is reported under the flag that named the file. */
function toParamError (error: NodeJS.ErrnoException): Error {
  return error.syscall === undefined ? error : paramError('csv', `cannot be written (${error.code})`)
}

/** `client export`: streams all clients as CSV, one batch in memory at a time. */
export async function exportClients (context: Context): Promise<void> {
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
  printRecord(context, { file, clients: written })
}
