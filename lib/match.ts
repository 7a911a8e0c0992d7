import { hash } from 'node:crypto'
import { IdentityError } from './errors.ts'

/** Characters of the hash of a field: 66 bits. */
const LENGTH = 11

const toHash = (value: unknown): string => hash('sha256', JSON.stringify(value ?? null), 'base64url').slice(0, LENGTH)

/** The hash of each field that an entity tag covers. Null for a tag of something else. */
function readTag (tag: string): Map<string, string> | null {
  const [, text] = /^"([\w:.-]+)"$/.exec(tag.trim()) ?? []
  return text === undefined ? null : new Map(text.split('.').map((part) => part.split(':') as [string, string]))
}

/**
 * The entity tag of some fields as they are shown, for `If-Match`. It has a hash of each, so that a change of one is no conflict with a change of
 * another: `revision` moves with every sign-in.
 */
export function toTag<T extends object> (shown: T, fields: readonly (keyof T & string)[]): string {
  return `"${fields.map((field) => `${field}:${toHash(shown[field])}`).join('.')}"`
}

/**
 * Refuses a change of fields that have changed since the caller read them.
 * @param ifMatch the header; absent: the caller does not ask
 * @param shown the record that the write replaces, as it is shown
 * @param sent the fields that the request changes
 * @throws ErrParam with 412 that names the fields
 */
export function checkMatch<T extends object> (ifMatch: string | undefined, shown: T, sent: readonly (keyof T & string)[]): void {
  if (ifMatch === undefined || ifMatch.trim() === '*') return
  let changed: string[] = [...sent]
  for (const tag of ifMatch.split(',').map(readTag)) {
    if (tag === null) continue
    const differing = sent.filter((field) => tag.get(field) !== toHash(shown[field]))
    if (differing.length === 0) return
    changed = differing
  }
  throw new IdentityError('ErrParam', `If-Match: changed since they were read: ${changed.join(', ')}`, { statusCode: 412 })
}
