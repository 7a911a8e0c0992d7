import { LAST_CHARACTER, searchOf } from '../checks.ts'
import { type Condition, toSeekRanges } from '../seek.ts'
import type { Change, CollectionSpec, Filter, Keyset, SortKey } from '../port.ts'
import { encodeName, encodeValue, toDate } from './documents.ts'

/** Translates the filters, sorts and changes of the port to MongoDB. They were checked before (../checks.ts). */

type Conditions = Record<string, Record<string, unknown>>

/** Each value is the operand of an operator written here, so that no value can be read as an operator. */
export function toFilter (spec: CollectionSpec, { equal = {}, contains = {}, before = {}, since = {}, absent = [], begins }: Filter = {}): object {
  const conditions: Conditions = {}
  const add = (key: string, operator: string, operand: unknown) => {
    (conditions[encodeName(key)] ??= {})[operator] = operand
  }
  for (const [key, value] of Object.entries(equal)) add(key, '$eq', toOperand(spec, key, value))
  for (const [key, value] of Object.entries(before)) add(key, '$lt', toOperand(spec, key, value))
  for (const [key, value] of Object.entries(since)) add(key, '$gte', toOperand(spec, key, value))
  for (const [key, value] of Object.entries(contains)) {
    if (key === spec.expiry) throw new TypeError(`${spec.name}.${key} is a time, so it cannot contain a text`)
    add(key, '$regex', toPattern(value))
  }
  for (const key of absent) add(key, '$in', [null])
  if (begins === undefined) return conditions
  const field = encodeName(searchOf(spec).field)
  // One condition for each word: an array matches where any of its items does.
  const words = begins.words.map((word) => ({ [field]: { $elemMatch: { $gte: word, $lt: word + LAST_CHARACTER } } }))
  return { ...conditions, $and: words }
}

/** The documents of a filter that come after a keyset: an `$or`. mongod reads each part from an index and merges them in order. */
export function toFilterAfter (spec: CollectionSpec, filter: Filter | undefined, sort: SortKey[] = [], after: Keyset): object {
  const conditions = toFilter(spec, filter)
  const parts = toSeekRanges(sort, after).map((range) => {
    const bounds = range.map((condition) => ({ [encodeName(condition.key)]: toBound(spec, condition) }))
    return { $and: Object.keys(conditions).length === 0 ? bounds : [conditions, ...bounds] }
  })
  return parts.length === 1 ? parts[0]! : { $or: parts }
}

const RELATIONS = { is: '$eq', above: '$gt', below: '$lt' } as const

/** The least value of each type: a comparison matches values of its own type only. */
const LEAST = { string: '', number: -Infinity, boolean: false } as const

function toBound (spec: CollectionSpec, condition: Condition): object {
  const { key } = condition
  if (condition.relation === 'absent') return { $eq: null }
  if (condition.relation === 'present') return { $gte: key === spec.expiry ? new Date(-8.64e15) : LEAST[spec.keys[key]!] }
  return { [RELATIONS[condition.relation]]: toOperand(spec, key, condition.value) }
}

/** One document by its id, if it meets the filter. */
export function toMatch (spec: CollectionSpec, id: string, where?: Filter): object {
  const conditions = toFilter(spec, where)
  return Object.hasOwn(conditions, '_id') ? { $and: [{ _id: id }, conditions] } : { _id: id, ...conditions }
}

function toOperand (spec: CollectionSpec, key: string, value: unknown): unknown {
  return key === spec.expiry && typeof value === 'string' ? toDate(spec, value) : value
}

/** A pattern for exactly this text. A NUL would end the pattern. */
function toPattern (text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|#/-]/g, '\\$&').replaceAll('\0', '\\x00')
}

/** The sort keys, then the id in the direction of the last key. */
export function toSort (sort: SortKey[] = []): [string, 1 | -1][] {
  const keys = new Map<string, 1 | -1>()
  for (const { key, direction } of sort) {
    const name = encodeName(key)
    if (!keys.has(name)) keys.set(name, direction === 'asc' ? 1 : -1)
  }
  if (!keys.has('_id')) keys.set('_id', sort.at(-1)?.direction === 'desc' ? -1 : 1)
  return [...keys]
}

/** A change as an update pipeline, empty when nothing changes. `$literal` keeps values from being read as expressions. */
export function toPipeline (spec: CollectionSpec, { set = {}, unset = [], increment = {} }: Change): object[] {
  const fields = Object.fromEntries([
    ...Object.entries(set)
      .filter(([, value]) => value !== undefined)
      .map(([field, value]) => [encodeName(field), { $literal: encodeValue(spec, field, value) }]),
    ...Object.entries(increment)
      .map(([field, amount]) => [encodeName(field), { $add: [{ $ifNull: [`$${encodeName(field)}`, 0] }, amount] }])
  ])
  return [
    ...Object.keys(fields).length > 0 ? [{ $set: fields }] : [],
    ...unset.length > 0 ? [{ $unset: unset.map(encodeName) }] : []
  ]
}
