import { extname } from 'node:path'
import { IdentityError } from '../errors.ts'
import type { Document, Renderer, Rendering } from '../store/port.ts'

/** What every list's renderer is told, beside what is its own. */
export interface RendererOptions {
  /** What stands between two records. */
  between: string
}

/** The rendering by a module that lies beside the one that asks: `.ts` when run from the sources, `.js` when built. */
export function renderingBy<O extends RendererOptions> (name: string, asker: string, options: O): Rendering {
  return { module: new URL(`./${name}${extname(asker)}`, asker).href, options }
}

/** A document as it is stored. Throws ErrInternal: JSON.parse's own message repeats a part of the text, which may be secret. */
export function parseStored<T> (text: string): T {
  try {
    return JSON.parse(text) as T
  } catch {
    throw new IdentityError('ErrInternal', 'a stored document cannot be read')
  }
}

/** Puts what is written of the records of a list, batch after batch, into texts with `between` between any two. */
export function createJoiner (between: string): <D>(items: readonly D[], toText: (item: D) => string) => string {
  let before = ''
  return (items, toText) => {
    let all = ''
    for (const item of items) {
      all += before + toText(item)
      before = between
    }
    return all
  }
}

/** Writes each record as `show` shows it. */
export function createRecordRenderer<T extends Document> (between: string, show: (record: T) => object): Renderer<T> {
  const join = createJoiner(between)
  const toText = (record: T) => JSON.stringify(show(record))
  return {
    fromTexts: (texts) => join(texts, (text) => toText(parseStored(text))),
    fromDocuments: (documents) => join(documents, toText)
  }
}
