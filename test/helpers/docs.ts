import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

/** The text of a file of the project. */
export function readDoc (path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

/** The paths of the documentation pages. */
export function listDocs (): string[] {
  return globSync(['*.md', 'docs/*.md', 'examples/*.md', 'examples/*/*.md'], { cwd: ROOT }).sort()
}

export interface Block {
  page: string
  language: string
  text: string
}

/** The fenced blocks of a page. */
export function listBlocks (page: string): Block[] {
  return [...readDoc(page).matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({ page, language, text }))
}
