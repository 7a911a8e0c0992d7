import type { CollectionSpec, Filter, SortKey } from '../port.ts'

/** A read; without a sort it is a count, whose order does not matter. */
interface Read {
  filter?: Filter | undefined
  sort?: readonly SortKey[]
}

/** Whether the keys of an index, which end with the id, lead to what is read. */
function leads (index: readonly string[], { filter: { equal = {}, before, since } = {}, sort }: Read): boolean {
  const fixed = index.findIndex((key) => !Object.hasOwn(equal, key))
  // The filter names the id, so it matches at most one record.
  if (fixed === -1) return true
  const rest = index.slice(fixed)
  const order = sort === undefined ? [] : [...sort.map(({ key }) => key), 'id']
  if (!order.slice(0, order.indexOf('id') + 1).every((key, position) => key === rest[position])) return false
  if (new Set(sort?.map(({ direction }) => direction)).size > 1) return false
  if (fixed > 0) return true
  const bounds = Object.keys({ ...before, ...since })
  return Object.keys(equal).length === 0 && bounds.every((key) => key === rest[0]) && (sort !== undefined || bounds.length > 0)
}

/** @throws TypeError unless an index leads to what is read, see Urgency */
export function checkUrgent ({ name, indexes = [], unique = [], expiry }: CollectionSpec, read: Read): void {
  const all = [[], ...indexes, ...unique.map((key) => [key]), ...(expiry === undefined ? [] : [[expiry]])]
  if (read.filter?.contains !== undefined || read.filter?.begins !== undefined || !all.some((keys) => leads([...keys, 'id'], read))) {
    throw new TypeError(`no index leads to an urgent read of ${name}`)
  }
}
