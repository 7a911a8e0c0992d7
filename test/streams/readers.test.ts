import { Readable } from 'node:stream'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import t from 'tap'
import { openSealed, seal } from '../../lib/export/seal.ts'
import { writeDocument } from '../../lib/export/write-document.ts'
import { READERS } from '../../lib/import/formats/index.ts'
import { readLines } from '../../lib/import/read-lines.ts'
import { toCsv } from '../../lib/lists/csv.ts'
import { readList } from '../../lib/lists/list-reader.ts'
import { renderList, streamPieces } from '../../lib/lists/listing.ts'
import { mapBatches } from '../../lib/lists/cursor.ts'
import { Relay } from '../../lib/service-client/relay.ts'
import { countTurns, createSource, settleAt } from '../helpers/turns.ts'
import { waitUntil } from '../helpers/wait.ts'

// What turns batches into text, or text into batches, takes no more from its source than its reader reads.

const BATCH = 100
const toClient = (index: number) => ({ clientId: `c${index}`, redirectUris: [], scopes: [], name: 'n'.repeat(100) })
const toBatch = (index: number) => Array.from({ length: BATCH }, (_, offset) => toClient(index * BATCH + offset))
const toLine = (index: number) => `${JSON.stringify(toClient(index))}\n`
const toText = (index: number) => Array.from({ length: BATCH }, (_, offset) => toLine(index * BATCH + offset)).join('')
const toBytes = (index: number) => Buffer.from(toText(index))
const toArrayPart = (index: number) => Buffer.from(`${index === 0 ? '[' : ','}${toBatch(index).map((one) => JSON.stringify(one)).join(',')}`)

const options = { escapeFormulae: true }
const listing = { stallTimeout: 60_000 }
const recipient = await identityToRecipient(await generateX25519Identity())

interface Row<T> {
  make: (index: number) => T
  open: (source: AsyncIterable<T>) => AsyncIterable<unknown> | Promise<AsyncIterable<unknown>>
  /** The most that is taken for the first piece: what it is made of, and what is read ahead. */
  most: number
}

const row = <T>(most: number, make: Row<T>['make'], open: Row<T>['open']) => ({ make, open, most }) as Row<unknown>

const toRows = (index: number) => Buffer.from(`${index === 0 ? 'id,account\n' : ''}${toBatch(index).map(({ clientId }) => `${clientId},${clientId}@example.com\n`).join('')}`)
const toPeople = (index: number) => Buffer.from(`${index === 0 ? '{"users":[' : ','}${toBatch(index).map(({ clientId }) => JSON.stringify({ localId: clientId, email: `${clientId}@example.com` })).join(',')}`)
const readImport = (format: string) => (source: AsyncIterable<Buffer>) => READERS[format]!(source, { source: 'old', withoutFactors: false, issuers: {} })

/** What the bridge sends on of an answer of its upstream. */
async function relay (source: AsyncIterable<Buffer>): Promise<AsyncIterable<Buffer>> {
  const dispatcher = { request: async () => ({ statusCode: 200, headers: {}, body: Readable.from(source, { highWaterMark: 1 }) }) } as never
  const upstream = { origin: 'http://127.0.0.1:1', base: '' } as never
  const open = new Relay({ upstream, maxConnections: 1, connectTimeout: 60_000, headersTimeout: 60_000, bodyTimeout: 60_000, dispatcher })
  return (await open.send({ method: 'GET', path: '/', headers: {}, body: null, signal: new AbortController().signal })).body
}

const ROWS: Record<string, Row<unknown>> = {
  'a list as CSV': row(1, toBatch, (source) => toCsv(source, options)),
  'a list of JSON in an object': row(4, toBatch, async (source) => await renderList({ batches: source }, { format: 'object', ...listing }) as Readable),
  'a list of JSON as an array': row(4, toBatch, async (source) => await renderList({ batches: source }, { format: 'array', ...listing }) as Readable),
  'a list of a record per line': row(4, toBatch, async (source) => await renderList({ batches: source }, { format: 'ndjson', ...listing }) as Readable),
  'pieces of a document': row(2, toText, (source) => streamPieces(source, { format: 'document', ...listing })),
  'batches as they are shown': row(1, toBatch, (source) => mapBatches(source, (record) => record)),
  'a document of parts': row(1, toBatch, async (source) => {
    const document = writeDocument({}, [['clients', { batches: source }]])
    for (const head of ['{', ',\n"clients":']) t.equal((await document.next()).value, head)
    return document
  }),
  'a sealed file': row(2 * Math.ceil(64 * 1024 / toBytes(0).length) + 4, toText, async (source) => await seal(source, recipient)),
  'a file that is not sealed': row(2, toBytes, (source) => openSealed(source, undefined)),
  'a list of JSON that is read': row(1, toArrayPart, (source) => readList(source, 'application/json')),
  'a list of lines that is read': row(1, toBytes, (source) => readList(source, 'application/x-ndjson')),
  'the lines of an import': row(2, toBytes, (source) => readLines(source)),
  'an import from a table as CSV': row(2, toRows, readImport('csv')),
  'an import from an object of JSON': row(2, toPeople, readImport('firebase')),
  'an answer that the bridge sends on': row(3, toBytes, relay)
}

for (const [name, { make, open, most }] of Object.entries(ROWS)) {
  t.test(`${name}: the source stands still with the reader, and ends with it`, async (t) => {
    const { seen, batches } = createSource(make)
    const iterator = (await open(batches))[Symbol.asyncIterator]()
    t.equal((await iterator.next()).done, false)
    const taken = await settleAt('the source', () => seen.taken)
    t.ok(taken >= 1 && taken <= most, `${taken} of ${most}`)
    t.equal((await iterator.next()).done, false, 'the reader goes on')
    t.ok(await settleAt('the source', () => seen.taken) <= 2 * most, 'and so does the source')
    t.equal(seen.isLeft, false)
    await iterator.return?.()
    await waitUntil('the end of the source', () => seen.isLeft)
  })
}

t.test('others have a turn between any two batches, also with a fast source and a fast reader', async (t) => {
  const formats = {
    csv: (source: AsyncIterable<object[]>) => toCsv(source, options),
    json: async (source: AsyncIterable<object[]>) => await renderList({ batches: source }, { format: 'object', ...listing }) as Readable
  }
  for (const [name, open] of Object.entries(formats)) {
    const batches = 50
    const turns = await countTurns(async () => {
      for await (const piece of await open(createSource(toBatch, batches).batches)) t.ok((piece as Buffer).length > 0)
    })
    t.ok(turns >= batches, `${name}: ${turns} turns`)
  }
})
