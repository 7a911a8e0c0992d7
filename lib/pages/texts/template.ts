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

/** The words of a text that link to the operator's help: `[contact support]`. */
const HELP = /\[([^\]]+)\]/

/** Makes a link to the operator's help of these words. Without a help address they are words like the others. */
export type LinkHelp = (words: Html) => Html

type Names<T extends string> = T extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never

/**
 * The texts of a language as pages use them: a text with placeholders is a function of their values, a text with plural forms
 * is a function of its number, and a text with a link to the operator's help is HTML. `T` is the type of the English texts.
 */
export type Compiled<T> = T extends string
  ? [Names<T>] extends [never] ? T extends `${string}[${string}]${string}` ? Html : string : (values: Readonly<Record<Names<T>, Slot>>) => Html
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

/** Whether an English text has a link to the operator's help. In the translations of others, brackets are brackets. */
export const isLinked = (english: string): boolean => HELP.test(english)

/** The same as `fill` for a text with such a link. */
export function fillLinked (text: string, values: Readonly<Record<string, Slot>>, linkHelp: LinkHelp): Html {
  return html`${text.split(HELP).map((part, index) => index % 2 === 0 ? fill(part, values) : linkHelp(fill(part, values)))}`
}

/** A text without the brackets of its links. */
export const dropLink = (text: string): string => text.split(HELP).join('')

/** Puts the values into a text that is not HTML. */
export function fillText (text: string, values: Readonly<Record<string, string>>): string {
  return text.split(PLACEHOLDER).map((part, index) => index % 2 === 0 ? part : values[part] ?? '').join('')
}

function compilePlural (forms: string | Plural, language: string): (values: Readonly<Record<string, Slot>>) => Html {
  if (typeof forms === 'string') return (values) => fill(forms, values)
  const rules = new Intl.PluralRules(language)
  return (values) => fill(forms[rules.select(Number(Object.values(values)[0]))] ?? forms.other, values)
}

/** @param english decides on what the text becomes */
function compileText (english: string, chosen: string, linkHelp: LinkHelp) {
  const hasLink = isLinked(english)
  const fillIn = (values: Record<string, Slot>) => hasLink ? fillLinked(chosen, values, linkHelp) : fill(chosen, values)
  if (listPlaceholders(english).length > 0) return fillIn
  return hasLink ? fillIn({}) : chosen
}

/**
 * Compiles the texts of a language.
 * @param sources the texts of the language; of a key the first that has it counts, and the English text if none does
 */
export function compileTexts<T> (english: T, sources: readonly object[], language: string, linkHelp: LinkHelp): Compiled<T> {
  const compiled = Object.entries(english as Tree).map(([key, text]) => {
    const given = (sources as readonly Tree[]).map((source) => source[key]).filter((one) => one !== undefined)
    const [chosen, tag] = given[0] === undefined ? [text, 'en'] : [given[0], language]
    if (typeof text === 'string') return [key, compileText(text, chosen as string, linkHelp)]
    return [key, isPlural(text) ? compilePlural(chosen as string | Plural, tag) : compileTexts(text, given as Tree[], language, linkHelp)]
  })
  return Object.fromEntries(compiled) as Compiled<T>
}
