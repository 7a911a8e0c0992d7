import type { ImportItem, ImportLine } from '../../../schemas/import.ts'
import { defined } from '../../defined.ts'
import { type FormatOptions, isObject, Refusal, Source, toShort } from './source.ts'

/** Makes a line of an import from a record of another system. Undefined: the record is no person. @throws Refusal */
export type Convert = (source: Source) => ImportLine | undefined

/** Levels of nesting in a record. */
const DEPTH = 32

const isDeep = (value: unknown, levels: number): boolean =>
  typeof value === 'object' && value !== null && (levels === 0 || Object.values(value).some((member) => isDeep(member, levels - 1)))

function convertOne (item: ImportItem, convert: Convert, options: FormatOptions): ImportItem[] {
  if (!('value' in item)) return [item]
  const { line, value } = item
  if (!isObject(value)) return [{ line, reason: 'is not an object' }]
  if (isDeep(value, DEPTH)) return [{ line, reason: `has more than ${DEPTH} levels of nesting` }]
  const source = new Source(value, options)
  try {
    const person = convert(source)
    return person === undefined ? [] : [{ line, value: person, dropped: source.dropped }]
  } catch (error) {
    if (error instanceof Refusal) return [defined({ line, reason: error.message, field: error.field === undefined ? undefined : toShort(error.field) })]
    // A value of a kind that no export has, such as null in place of an object.
    if (error instanceof TypeError) return [{ line, reason: 'is not of the form that this format has' }]
    throw error
  }
}

/** Makes lines of an import from records. */
export async function * convertAll (
  batches: AsyncIterable<ImportItem[]>, convert: Convert, options: FormatOptions
): AsyncGenerator<ImportItem[]> {
  for await (const batch of batches) yield batch.flatMap((item) => convertOne(item, convert, options))
}
