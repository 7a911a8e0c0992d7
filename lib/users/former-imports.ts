import type { UserRecord } from '../records/user.ts'
import { type KeyedHashesParts, createKeyedHashes } from './keyed-hashes.ts'

/** By what a source knows a person. */
interface Names {
  id?: string | undefined
  account: string
  /** Their ids in other systems. */
  external?: { [source: string]: string } | undefined
}

/** Kinds of names. A person has the same id here as in the source where the import has set it. */
type Kind = 'id' | 'account'

const toText = (source: string, kind: Kind, name: string): string => `${source}\0${kind}\0${name}`

/** In place of the name of a source: any source. No source has this name. */
const ANY = '*'

const toForeign = (source: string, external: Names['external'] = {}): string | undefined => Object.hasOwn(external, source) ? external[source] : undefined

/**
 * The people whom an import has brought in and who were deleted: no copy of another system brings them in again, as long as events tell of
 * them. Only hashes are stored.
 */
export function createFormerImports (parts: KeyedHashesParts) {
  const people = createKeyedHashes(parts, 'former_imports', 'imports')

  return {
    /** Remembers somebody who is about to be deleted. */
    async remember ({ id, account, external, imported_source: source }: UserRecord): Promise<void> {
      if (source === undefined) return
      const foreign = toForeign(source, external)
      const ids = foreign === undefined ? [id] : [...new Set([id, foreign])]
      const texts = [...ids.map((one) => toText(source, 'id', one)), ...[source, ANY].map((one) => toText(one, 'account', account))]
      await Promise.all(texts.map(people.remember))
    },

    /**
     * By which field of a line somebody was known who was deleted. Undefined: by none.
     * @param source where the line comes from. Absent: from wherever the person came then
     */
    async has ({ id, account, external }: Names, source?: string): Promise<'id' | 'external' | 'account' | undefined> {
      const foreign = source === undefined ? undefined : toForeign(source, external)
      if (source !== undefined && id !== undefined && await people.has(toText(source, 'id', id))) return 'id'
      if (source !== undefined && foreign !== undefined && foreign !== id && await people.has(toText(source, 'id', foreign))) return 'external'
      return await people.has(toText(source ?? ANY, 'account', account)) ? 'account' : undefined
    }
  }
}

export type FormerImports = ReturnType<typeof createFormerImports>
