import fc from 'fast-check'
import type { Test } from 'tap'

/** Fixed, so that every `npm test` has the same runs. PROPERTY_SEED sets another; a failure prints the seed and the path to repeat it. */
const SEED = Number(process.env.PROPERTY_SEED ?? 20_261_122)

/** `npm run test:long` multiplies the runs. */
const FACTOR = Number(process.env.PROPERTY_FACTOR ?? 1)

/**
 * Checks an asynchronous property, which throws for a counterexample. A failure reports the smallest counterexample, its seed and
 * its path.
 * @param runs in `npm test`
 */
export async function checkProperty<T> (t: Test, runs: number, property: fc.IAsyncPropertyWithHooks<T>): Promise<void> {
  t.setTimeout(0)
  await fc.assert(property, { seed: SEED, numRuns: runs * FACTOR })
  t.pass(`${runs * FACTOR} runs with the seed ${SEED}`)
}

/** Any text that UTF-8 can encode, often with characters that parsers, sorts and patterns get wrong. */
export const anyText = (maxLength: number): fc.Arbitrary<string> => fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: 'binary', maxLength }) },
  { weight: 2, arbitrary: fc.string({ unit: fc.constantFrom('a', 'A', 'b', '%', '_', '\\', '.', '*', '$', '\'', '"', ',', ';', '\n', '\r', '\t', ' ', '=', '+', '-', '@', '\ufeff', '\u00e4', 'a\u0308', '\ud83c\udf4f', '\ud7ff', '\ue000', '\ufffd', '\udbff\udfff'), maxLength }) },
  { weight: 1, arbitrary: fc.constantFrom('', '$ne', '__proto__', 'null', '[]', '{}', '0', 'NaN') }
)

/** Compares as every store sorts: by code point, missing values first. */
export function compareValues (one: string | number | boolean | null | undefined, other: typeof one): number {
  const [a, b] = [one ?? null, other ?? null]
  if (a === null || b === null) return Number(b === null) - Number(a === null)
  if (typeof a === 'string' && typeof b === 'string') return Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b)))
  return a < b ? -1 : a > b ? 1 : 0
}
