import { paramError } from '../errors.ts'
import type { SortKey } from '../store/port.ts'

/** The number of characters of a caller's text that an error message repeats. */
const ECHO = 32

/** A caller's text for an error message: shortened, and printable. */
export function quote (text: string): string {
  const short = text.length > ECHO ? `${text.slice(0, ECHO)}...` : text
  return `'${short.replace(/[^\x20-\x7e]/g, '?')}'`
}

/**
 * Parses a `sort` parameter: comma-separated `key:direction` (docs/api.md, Lists).
 * @param text as the caller wrote it; absent or empty means the fallback
 * @param keys names in the API -> stored keys
 * @param fallback a valid `sort` parameter
 * @throws ErrParam for a key that is unknown or given twice, a missing or unknown direction, more than two parts
 */
export function parseSort (text: string | undefined, keys: Readonly<Record<string, string>>, fallback: string): SortKey[] {
  const seen = new Set<string>()
  return (text || fallback).split(',').map((item) => {
    const [name = '', direction, ...rest] = item.split(':')
    if (rest.length > 0) throw paramError('sort', `${quote(item)} has more than two parts`)
    const key = Object.hasOwn(keys, name) ? keys[name] : undefined
    if (key === undefined) throw paramError('sort', `unknown key ${quote(name)}, expected one of ${Object.keys(keys).join(', ')}`)
    if (direction === undefined || direction === '') throw paramError('sort', `key ${quote(name)} has no direction, expected asc or desc`)
    if (direction !== 'asc' && direction !== 'desc') throw paramError('sort', `unknown direction ${quote(direction)}, expected asc or desc`)
    if (seen.has(key)) throw paramError('sort', `key ${quote(name)} is given twice`)
    seen.add(key)
    return { key, direction }
  })
}
