import { extname } from 'node:path'
import { IdentityError } from './errors.ts'
import type { Document, Renderer, Rendering } from './store/port.ts'

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

/** Writes each record as `show` shows it. */
export function createRecordRenderer<T extends Document> (between: string, show: (record: T) => object): Renderer<T> {
  let before = ''
  const write = (record: T) => {
    const text = before + JSON.stringify(show(record))
    before = between
    return text
  }
  return {
    fromTexts: (texts) => texts.reduce((all, text) => all + write(parseStored<T>(text)), ''),
    fromDocuments: (documents) => documents.reduce((all, document) => all + write(document), '')
  }
}
