import { de } from './de.ts'
import { type Texts, en } from './en.ts'
import type { Language } from './language.ts'
import { compileTexts } from './template.ts'

export { type Message, type Texts } from './en.ts'

export const TEXTS: Readonly<Record<Language, Texts>> = { en: compileTexts(en, en, 'en'), de: compileTexts(en, de, 'de') }
