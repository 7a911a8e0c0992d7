import { paramError } from './errors.ts'

/**
 * Words by whose beginnings people and clients are found, in any case and without accents. They are the same for what is stored and for what is
 * asked: a change of the folding needs a step of the layout (store/migrator.ts).
 * @module
 */

/** Words of a record. */
const MOST = 8

/** Words of a search. */
const ASKED = 8

/** Characters of a word: an id of ours is shorter. */
const LENGTH = 40

/** Characters of a search. */
export const SEARCH_LENGTH = 256

/** Letters that Unicode does not decompose, as people type them without the keyboard of the language. */
const SPELT: Readonly<Record<string, string>> = {
  ß: 'ss', ø: 'o', ł: 'l', đ: 'd', ð: 'd', þ: 'th', æ: 'ae', œ: 'oe', ı: 'i', ħ: 'h', ŧ: 't', ŋ: 'n', ĸ: 'k', ς: 'σ'
}

const SPELT_LETTERS = new RegExp(`[${Object.keys(SPELT).join('')}]`, 'gu')

/** A text in lower case, without accents and other marks. */
function fold (text: string): string {
  // Decomposition brings letters in upper case, such as those of mathematics.
  return text.toLowerCase().normalize('NFKD').toLowerCase().replace(/\p{M}/gu, '').replace(SPELT_LETTERS, (letter) => SPELT[letter] ?? letter)
}

/** The folded words of a text, each once, and none longer than LENGTH. */
function split (text: string): string[] {
  const words = fold(text).match(/[\p{L}\p{N}]+/gu) ?? []
  return [...new Set(words.map((word) => Array.from(word).slice(0, LENGTH).join('')))]
}

const take = (texts: readonly (string | undefined)[]): string[] => [...new Set(texts.flatMap((text) => split(text ?? '')))].slice(0, MOST)

const splitAddress = (text = ''): [local: string, domain: string] => {
  const at = text.lastIndexOf('@')
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

/** The words of a user: what is theirs before what many share, the domain of an address. */
export function toUserWords ({ account, email, name }: { account: string, email?: string | undefined, name?: string | undefined }): string[] {
  const [[own, domain], [other, otherDomain]] = [splitAddress(account), splitAddress(email)]
  return take([own, name, other, domain, otherDomain])
}

/** The words of a client. */
export const toClientWords = ({ id, name }: { id: string, name?: string | undefined }): string[] => {
  const words = take([name])
  // The beginning of its id, whatever the name takes.
  return [...new Set([...words.slice(0, MOST - 1), ...split(id.replace(/^https:\/\//, '')).slice(0, 1)])]
}

/** Whether a record has exactly these words. */
export const hasWords = (words: readonly string[] | undefined, wanted: readonly string[]): boolean => (
  words?.length === wanted.length && wanted.every((word, index) => word === words[index]))

/** Without those that begin another one, because they find nothing less. */
const withoutBeginnings = (words: readonly string[]): string[] => (
  words.filter((word, index) => !words.some((other, at) => at !== index && other.startsWith(word))))

/** The first words of any text, for a search that refuses none. */
export const listSearchWords = (text: string): string[] => withoutBeginnings(split(text).slice(0, ASKED))

/**
 * The words of a search.
 * @returns undefined for an empty text
 * @throws ErrParam for one without letters and digits, or with too many words
 */
export function parseSearch (text: string | undefined, field = 'search'): string[] | undefined {
  if (!text) return undefined
  if (Array.from(text).length > SEARCH_LENGTH) throw paramError(field, `has more than ${SEARCH_LENGTH} characters`)
  const words = split(text)
  if (words.length === 0) throw paramError(field, 'has no letter and no digit')
  if (words.length > ASKED) throw paramError(field, `has more than ${ASKED} words`)
  return withoutBeginnings(words)
}
