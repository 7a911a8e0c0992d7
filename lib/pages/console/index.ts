import { renderDocument } from '../document.ts'
import { type Look, extendLook } from '../look.ts'
import type { Part } from '../parts.ts'
import { getTexts } from '../texts/index.ts'
import type { Language } from '../texts/language.ts'
import type { ConsoleContext } from './frame.ts'
import { CONSOLE_STYLE } from './style.ts'

export { type ConsoleContext, type ConsoleDone, type ConsoleSection, type ConsoleView } from './frame.ts'

/** The design of the pages with what the console adds. */
export const createConsoleLook = (look: Look): Look => extendLook(look, CONSOLE_STYLE)

/**
 * Renders a page of the console. It has no script.
 * @param look of createConsoleLook
 */
export function renderConsole (
  render: (context: ConsoleContext) => Part, look: Look, { language, zone, query }: { language: Language, zone: string, query: string | undefined }
): string {
  const texts = getTexts(look, language)
  const part = render({ texts, language, zone, home: look.getHome?.(), links: look.links })
  return renderDocument(part, { look, texts, language, query, classes: 'console', hasScripts: false })
}
