import { EVENT_TYPES } from '../events/types.ts'

const TYPES = Object.keys(EVENT_TYPES)

/** Whether a pattern covers a type: the type itself, all of a kind as `user.*`, or all as `*`. */
function covers (pattern: string, type: string): boolean {
  return pattern === '*' || pattern === type || (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1)))
}

/** Whether one of the patterns covers the type. */
export function matchesType (patterns: readonly string[], type: string): boolean {
  return patterns.some((pattern) => covers(pattern, type))
}

/** Whether the pattern covers an existing type. */
export function isTypePattern (pattern: string): boolean {
  return TYPES.some((type) => covers(pattern, type))
}
