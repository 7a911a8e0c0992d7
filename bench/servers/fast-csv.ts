import { createServer } from 'node:http'
import { once } from 'node:events'
import { format } from 'fast-csv'
import { listedClientAt, range } from '../fixture.ts'
import { serve } from './serve.ts'

// fast-csv alone: turns objects in memory into CSV and discards it. No HTTP, no store.

const COLUMNS = ['clientId', 'createdAt', 'modifiedAt', 'clientSecret', 'redirectUris', 'scopes', 'userId', 'name', 'image']

type Client = ReturnType<typeof listedClientAt>

/** Arrays are written as JSON (docs/bridge.md). */
function transform (client: Client) {
  return { ...client, redirectUris: JSON.stringify(client.redirectUris), scopes: JSON.stringify(client.scopes) }
}

async function csv ({ rows, users }: { rows: number, users: number }): Promise<{ elapsed: number, bytes: number }> {
  const clients = range(100, (index) => listedClientAt(index, users))
  const start = performance.now()
  const stream = format<Client, ReturnType<typeof transform>>({ headers: COLUMNS, writeBOM: true, includeEndRowDelimiter: true, transform })
  let bytes = 0
  stream.on('data', (chunk: Buffer) => { bytes += chunk.length })
  const end = once(stream, 'end')
  for (let row = 0; row < rows; row++) {
    if (!stream.write(clients[row % 100])) await once(stream, 'drain')
  }
  stream.end()
  await end
  return { elapsed: performance.now() - start, bytes }
}

await serve(createServer(), { calls: { csv } })
