import { de } from './de.ts'
import { type Texts, en } from './en.ts'
import type { Language } from './language.ts'

export { type Message, type Texts } from './en.ts'

export const TEXTS: Readonly<Record<Language, Texts>> = { en, de }
