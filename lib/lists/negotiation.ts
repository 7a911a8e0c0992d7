import Negotiator from 'negotiator'

export const JSON_TYPE = 'application/json; charset=utf-8'
export const NDJSON_TYPE = 'application/x-ndjson; charset=utf-8'
/** RFC 4180, 3. */
export const CSV_TYPE = 'text/csv; charset=utf-8; header=present'

/**
 * The offered type that an Accept field prefers (RFC 9110, 12.5.1). Of equal weights the first in the field wins. The first
 * offered type is the answer when there is no field, or nothing in it matches.
 */
export function selectType (accept: string | undefined, offered: readonly [string, ...string[]]): string {
  return new Negotiator({ headers: { accept } }).mediaType(offered) ?? offered[0]
}

/** Whether an Accept field prefers CSV to JSON. A wildcard alone does not. */
export function prefersCsv (accept: string | undefined): boolean {
  return selectType(accept, [JSON_TYPE, NDJSON_TYPE, CSV_TYPE]) === CSV_TYPE
}

/** Takes `format=csv` out of a query: the rest, byte for byte, and whether it was there. */
export function takeCsvFormat (query: string): { query: string, csv: boolean } {
  if (query === '') return { query, csv: false }
  const pairs = query.split('&')
  const rest = pairs.filter((pair) => new URLSearchParams(pair).get('format') !== 'csv')
  return { query: rest.join('&'), csv: rest.length < pairs.length }
}
