import Negotiator from 'negotiator'

export const JSON_TYPE = 'application/json; charset=utf-8'
export const NDJSON_TYPE = 'application/x-ndjson; charset=utf-8'
/** RFC 4180, 3. */
export const CSV_TYPE = 'text/csv; charset=utf-8; header=present'

/**
 * Selects the offered type that an Accept field prefers (RFC 9110, 12.5.1). With equal weights, the first in the field wins. Without
 * a field or a match, the first offered type is selected.
 */
export function selectType (accept: string | undefined, offered: readonly [string, ...string[]]): string {
  return new Negotiator({ headers: { accept } }).mediaType(offered) ?? offered[0]
}

/** Whether an Accept field prefers CSV to JSON. A wildcard alone does not. */
export function prefersCsv (accept: string | undefined): boolean {
  return selectType(accept, [JSON_TYPE, NDJSON_TYPE, CSV_TYPE]) === CSV_TYPE
}

/** Removes `format=csv` from a query. Returns the rest unchanged, and whether the parameter was present. */
export function takeCsvFormat (query: string): { query: string, csv: boolean } {
  if (query === '') return { query, csv: false }
  const pairs = query.split('&')
  const rest = pairs.filter((pair) => new URLSearchParams(pair).get('format') !== 'csv')
  return { query: rest.join('&'), csv: rest.length < pairs.length }
}
