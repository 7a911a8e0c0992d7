/**
 * The last changes of the content, next to its version: a text of lines, the newest first. Each has the version before a transaction, that
 * after it, and the documents that it has changed. So a process that is not far behind drops only these documents from its cache. Versions are
 * random, so a line holds for nothing but the content that it was written for, also in a backup.
 * @module
 */

/** A document that a write may change. */
export interface Touched {
  collection: string
  id: string
}

/** Null: nobody knows which, or they are many. */
type Changed = readonly Touched[] | null

type Line = [before: string, after: string, changed: [collection: string, id: string][] | null]

/** Characters of all lines. They fit into one page of the file. */
const LENGTH = 3_000

/** Documents of one line. */
const MOST = 30

/**
 * Adds the line of a transaction, and drops the oldest lines beyond LENGTH.
 * @param before null after a change by another program, of which nothing is known: then there are no lines
 */
export function addChange (lines: string, before: string | null, after: string, changed: Changed): string {
  if (before === null) return ''
  const named = changed === null || changed.length > MOST ? null : changed.map(({ collection, id }): [string, string] => [collection, id])
  const all = `${JSON.stringify([before, after, named] satisfies Line)}\n${lines}`
  return all.length <= LENGTH ? all : all.slice(0, all.lastIndexOf('\n', LENGTH - 1) + 1)
}

/** The documents that have changed between two versions. Null where the lines do not lead from the one to the other. */
export function findChanged (lines: string, from: string, to: string): Touched[] | null {
  const found: Touched[] = []
  let wanted = to
  for (const text of lines.split('\n')) {
    if (text === '') break
    const [before, after, changed] = JSON.parse(text) as Line
    // Lines may have been added since the version was read.
    if (after !== wanted && wanted === to) continue
    if (after !== wanted || changed === null) return null
    for (const [collection, id] of changed) found.push({ collection, id })
    if (before === from) return found
    wanted = before
  }
  return null
}
