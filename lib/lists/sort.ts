import { paramError } from '../errors.ts'
import type { SortKey } from '../store/port.ts'

/** Characters of a caller's text that an error repeats. */
const ECHO = 32

/** A caller's own text, cut short and made printable, for an error that names it. */
function quote (text: string): string {
  const short = text.length > ECHO ? `${text.slice(0, ECHO)}...` : text
  return `'${short.replace(/[^\x20-\x7e]/g, '?')}'`
}

/**
 * Reads a `sort` parameter: comma-separated `key:direction` (service.md, 4.1 and 4.3).
 * @param text as the caller wrote it; absent or empty gives the fallback
 * @param keys the names a caller may use -> the stored keys
 * @param fallback a `sort` parameter that is known to be good
 * @throws ErrParam for an unknown key or one given twice, a missing or unknown direction, more than two parts
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
