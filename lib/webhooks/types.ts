import { EVENT_TYPES, coversType } from '../events/types.ts'

const TYPES = Object.keys(EVENT_TYPES)

/** Whether one of the patterns covers the type. */
export function matchesType (patterns: readonly string[], type: string): boolean {
  return patterns.some((pattern) => coversType(pattern, type))
}

/** Whether the pattern covers an existing type. */
export function isTypePattern (pattern: string): boolean {
  return TYPES.some((type) => coversType(pattern, type))
}
