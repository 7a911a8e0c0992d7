import { TIMERS } from '../../timers.ts'
import type { Document } from '../port.ts'
import { closeClient, createClient, toDatabaseName } from './client.ts'
import { type Stored, decodeDocument } from './documents.ts'

const PAGE = 1000

/** Reads a collection of a database that a service may use. */
export async function * readServerAside (url: string, collection: string, timeout: number): AsyncGenerator<Document[]> {
  const client = createClient(url, timeout)
  try {
    const stored = client.db(toDatabaseName(url)).collection<Stored>(collection)
    for (let last = ''; ;) {
      const page = (await stored.find({ _id: { $gt: last } }, { sort: { _id: 1 }, limit: PAGE }).toArray()).map((one) => decodeDocument(one))
      if (page.length === 0) return
      yield page
      last = page.at(-1)!.id
    }
  } finally {
    await closeClient(client, timeout, TIMERS)
  }
}
