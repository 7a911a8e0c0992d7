import { createServer } from 'node:http'
import { once } from 'node:events'
import { format } from 'fast-csv'
import { listedClientAt, range } from '../fixture.ts'
import { serve } from './serve.ts'

// fast-csv alone: rows that are ready, formatted and dropped. No HTTP, no store.

const COLUMNS = ['clientId', 'createdAt', 'modifiedAt', 'clientSecret', 'redirectUris', 'scopes', 'userId', 'name', 'image'] as const

async function csv ({ rows, users }: { rows: number, users: number }): Promise<{ elapsed: number, bytes: number }> {
  const cells = range(100, (index) => {
    const client = listedClientAt(index, users)
    return COLUMNS.map((column) => {
      const value = client[column] ?? ''
      return typeof value === 'string' ? value : JSON.stringify(value)
    })
  })
  const start = performance.now()
  const stream = format({ headers: [...COLUMNS], writeBOM: true, includeEndRowDelimiter: true })
  let bytes = 0
  stream.on('data', (chunk: Buffer) => { bytes += chunk.length })
  const end = once(stream, 'end')
  for (let row = 0; row < rows; row++) {
    if (!stream.write(cells[row % 100])) await once(stream, 'drain')
  }
  stream.end()
  await end
  return { elapsed: performance.now() - start, bytes }
}

await serve(createServer(), { calls: { csv } })
