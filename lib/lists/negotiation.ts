import { negotiate } from '@fastify/accept-negotiator'

/**
 * From the least to the most general: of two types that the caller likes alike the one named first wins, so that JSON
 * beside CSV stays JSON, and CSV beside a wildcard is CSV.
 */
const RANGES = ['application/json', 'application/x-ndjson', 'text/csv', 'text/*', 'application/*', '*/*']

/** Parameters of a media range other than its weight, which the negotiator would take for one. */
const PARAMETER = /;(?!\s*q\s*=)\s*[^\s=;,"]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;,"]*)/g

/** Does this Accept field (RFC 9110, 12.5.1) prefer CSV to JSON? A wildcard alone does not. */
export function prefersCsv (accept: string | undefined): boolean {
  if (accept === undefined) return false
  const preferred = negotiate(accept.toLowerCase().replace(PARAMETER, ''), RANGES)
  return preferred === 'text/csv' || preferred === 'text/*'
}

/** A query without its `format=csv`, and whether it had one. What is left stays as it was, byte for byte. */
export function takeCsvFormat (query: string): { query: string, csv: boolean } {
  if (query === '') return { query, csv: false }
  const pairs = query.split('&')
  const kept = pairs.filter((pair) => new URLSearchParams(pair).get('format') !== 'csv')
  return { query: kept.join('&'), csv: kept.length < pairs.length }
}
