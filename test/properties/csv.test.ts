import { deepStrictEqual } from 'node:assert/strict'
import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import t from 'tap'
import { toCsv } from '../../lib/lists/csv.ts'
import { anyText, checkProperty } from '../helpers/property.ts'

const COLUMNS = ['clientId', 'createdAt', 'modifiedAt', 'clientSecret', 'redirectUris', 'scopes', 'userId', 'name', 'image'] as const

// fast-csv leaves NUL out, and no name may hold one.
const texts = anyText(40).map((text) => text.replaceAll('\0', ''))
const optional = fc.option(texts, { nil: undefined })
const clients = fc.record({
  clientId: texts,
  createdAt: texts,
  modifiedAt: texts,
  clientSecret: optional,
  redirectUris: fc.array(texts, { maxLength: 3 }),
  scopes: fc.array(texts, { maxLength: 3 }),
  userId: optional,
  name: texts,
  image: optional
})

/** How a list arrives: in batches of any size, empty ones among them. */
const lists = fc.array(fc.array(clients, { maxLength: 4 }), { maxLength: 4 })

async function write (batches: object[][], escapeFormulae: boolean): Promise<string> {
  async function * replay () { yield * batches }
  const parts: Buffer[] = []
  for await (const part of toCsv(replay(), { escapeFormulae })) parts.push(part)
  return Buffer.concat(parts).toString()
}

const toCell = (value: unknown) => (value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value))

/** As a program reads it (RFC 4180). */
const read = (csv: string): string[][] => parse(csv, { bom: true, relaxColumnCount: false, recordDelimiter: '\n' })

t.test('a CSV parser reads the written values', async (t) => {
  await checkProperty(t, 300, fc.asyncProperty(lists, async (batches) => {
    const [header, ...rows] = read(await write(batches, false))
    deepStrictEqual(header, [...COLUMNS])
    deepStrictEqual(rows, batches.flat().map((client) => COLUMNS.map((column) => toCell(client[column]))))
  }))
})

t.test('with formulae escaped, apart from the apostrophes', async (t) => {
  const strip = (cells: string[]) => cells.map((cell) => cell.replaceAll("'", ''))
  await checkProperty(t, 300, fc.asyncProperty(lists, async (batches) => {
    const [, ...rows] = read(await write(batches, true))
    deepStrictEqual(rows.map(strip), batches.flat().map((client) => strip(COLUMNS.map((column) => toCell(client[column])))))
  }))
})

t.test('no cell and no part of one begins a formula', async (t) => {
  const sign = /^(?:\s*[=+\-@]|[\t\r\n])/
  await checkProperty(t, 300, fc.asyncProperty(lists, async (batches) => {
    const [, ...rows] = read(await write(batches, true))
    for (const cell of rows.flat()) {
      const parts = cell.split(';')
      if (parts.some((part) => sign.test(part))) throw new Error(`a formula: ${JSON.stringify(cell)}`)
    }
  }))
})
