import { type Html, html } from '../html.ts'

/** A text that depends on a number: a form for each plural category that the language has (Unicode CLDR). */
export interface Plural {
  readonly zero?: string
  readonly one?: string
  readonly two?: string
  readonly few?: string
  readonly many?: string
  readonly other: string
}

/** A name or another text from outside, or a part of the page. Strings are escaped. */
type Slot = string | number | Html

const PLACEHOLDER = /\{(\w+)\}/

type Names<T extends string> = T extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never

/**
 * The texts of a language as pages use them: a text with placeholders is a function of their values, and a text with plural forms
 * is a function of its number. `T` is the type of the English texts.
 */
export type Compiled<T> = T extends string
  ? [Names<T>] extends [never] ? string : (values: Readonly<Record<Names<T>, Slot>>) => Html
  : T extends { readonly one: string, readonly other: infer Other extends string }
    ? (values: Readonly<Record<Names<Other>, number>>) => Html
    : { readonly [Key in keyof T]: Compiled<T[Key]> }

/** The texts of another language: the same keys. A text with plural forms may also be the same for all numbers. */
export type Translated<T> = T extends string
  ? string
  : T extends { readonly one: string, readonly other: string } ? string | Plural : { readonly [Key in keyof T]: Translated<T[Key]> }

/** Texts in groups. */
export interface Tree { readonly [key: string]: string | Tree }

/** Whether this English text has plural forms. */
export function isPlural (text: object): text is Plural {
  return 'one' in text && 'other' in text
}

/** The names of the placeholders in a text. */
export function listPlaceholders (text: string): string[] {
  return text.split(PLACEHOLDER).filter((_part, index) => index % 2 === 1)
}

/** Puts the values into a text, which is escaped. */
function fill (text: string, values: Readonly<Record<string, Slot>>): Html {
  return html`${text.split(PLACEHOLDER).map((part, index) => index % 2 === 0 ? part : values[part])}`
}

/** Puts the values into a text that is not HTML. */
export function fillText (text: string, values: Readonly<Record<string, string>>): string {
  return text.split(PLACEHOLDER).map((part, index) => index % 2 === 0 ? part : values[part] ?? '').join('')
}

function compilePlural (forms: string | Plural, language: string): (values: Readonly<Record<string, Slot>>) => Html {
  if (typeof forms === 'string') return (values) => fill(forms, values)
  const rules = new Intl.PluralRules(language)
  return (values) => fill(forms[rules.select(Number(Object.values(values)[0]))] ?? forms.other, values)
}

/**
 * Compiles the texts of a language.
 * @param sources the texts of the language; of a key the first that has it counts, and the English text if none does
 */
export function compileTexts<T> (english: T, sources: readonly object[], language: string): Compiled<T> {
  const compiled = Object.entries(english as Tree).map(([key, text]) => {
    const given = (sources as readonly Tree[]).map((source) => source[key]).filter((one) => one !== undefined)
    const [chosen, tag] = given[0] === undefined ? [text, 'en'] : [given[0], language]
    const fillIn = (values: Record<string, Slot>) => fill(chosen as string, values)
    if (typeof text === 'string') return [key, listPlaceholders(text).length === 0 ? chosen : fillIn]
    return [key, isPlural(text) ? compilePlural(chosen as string | Plural, tag) : compileTexts(text, given as Tree[], language)]
  })
  return Object.fromEntries(compiled) as Compiled<T>
}
