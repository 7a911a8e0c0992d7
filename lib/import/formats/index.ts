import type { ImportItem } from '../../../schemas/import.ts'
import { readLines } from '../read-lines.ts'
import { convertAuth0 } from './auth0.ts'
import { begin } from './begin.ts'
import { convertBetterAuth } from './better-auth.ts'
import { convertClerk } from './clerk.ts'
import { type Convert, convertAll } from './convert.ts'
import { convertCsv } from './csv.ts'
import { readRecords } from './csv-rows.ts'
import { convertDjango } from './django.ts'
import { convertFirebase } from './firebase.ts'
import { readJson } from './json.ts'
import { convertKeycloak } from './keycloak.ts'
import type { FormatOptions } from './source.ts'
import { convertSupabase } from './supabase.ts'

/** Reads a file: the lines of an import that each piece of it completes. It never throws because of what is in the file. */
export type Reader = (body: AsyncIterable<Buffer>, options: FormatOptions) => AsyncGenerator<ImportItem[]>

const ofJson = (convert: Convert, key?: string): Reader => (body, options) => convertAll(readJson(body, key), convert, options)
const ofCsv = (convert: Convert): Reader => (body, options) => convertAll(readRecords(body), convert, options)

/** A table as CSV, or as JSON. */
const ofTable = (convert: Convert): Reader => async function * (body, options) {
  const { opening, chunks } = await begin(body)
  const isJson = opening === 0x5b || opening === 0x7b
  yield * (isJson ? ofJson : ofCsv)(convert)(chunks, options)
}

/** Our own form: what the import takes over HTTP. */
const readOwn: Reader = async function * (body) {
  const { problem, chunks } = await begin(body)
  if (problem !== undefined) yield [{ line: 1, reason: problem }]
  else yield * readLines(chunks)
}

export const READERS: Readonly<Record<string, Reader>> = {
  auth0: ofJson(convertAuth0),
  firebase: ofJson(convertFirebase, 'users'),
  keycloak: ofJson(convertKeycloak, 'users'),
  django: ofJson(convertDjango),
  clerk: ofCsv(convertClerk),
  supabase: ofTable(convertSupabase),
  'better-auth': ofJson(convertBetterAuth),
  ndjson: readOwn,
  'fastify-identity': readOwn,
  csv: ofCsv(convertCsv)
}
