import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { findNearest } from '../../nearest.ts'
import { en as pages } from '../../pages/texts/en.ts'
import { BUILT_IN, type Language, type OwnTexts } from '../../pages/texts/language.ts'
import { type Plural, type Tree, isPlural, listPlaceholders } from '../../pages/texts/template.ts'
import { en as mails } from './en.ts'

/** The texts that a file can have. */
const ENGLISH: Tree = { pages, mails }

/** Bounds of one file, one text, and the problems in an error. */
const FILE_LIMIT = 1024 * 1024
const TEXT_LIMIT = 4000
const PROBLEMS = 20

const FORMS: readonly (keyof Plural)[] = ['zero', 'one', 'two', 'few', 'many', 'other']

/** Mails may name the service anywhere, and need not. */
const isFree = (placeholder: string, path: string) => placeholder === 'service' && path.startsWith('mails.')

/** The operator's texts, and what they lack. */
interface ReadTexts {
  own: Record<Language, OwnTexts>
  warnings: string[]
}

/** Checks one text. `isWhole`: it must have every placeholder. */
function checkText (path: string, text: unknown, english: string, isWhole = true): string[] {
  if (typeof text !== 'string' || text.trim() === '' || text.length > TEXT_LIMIT) {
    return [`${path}: must be a text of 1 to ${TEXT_LIMIT} characters`]
  }
  const [known, used] = [listPlaceholders(english), listPlaceholders(text)]
  const there = known.length === 0 ? '' : `; there is ${known.map((name) => `{${name}}`).join(' and ')}`
  const unknown = used.filter((name) => !known.includes(name) && !isFree(name, path))
  const missing = known.filter((name) => isWhole && !used.includes(name) && !isFree(name, path))
  return [
    ...unknown.map((name) => `${path}: has the unknown placeholder {${name}}${there}`),
    ...missing.map((name) => `${path}: lacks the placeholder {${name}}`)
  ]
}

function checkPlural (path: string, text: unknown, { other: english }: Plural): string[] {
  if (typeof text === 'string') return checkText(path, text, english)
  const forms = Object.entries(Object(text) as object)
  const unknown = forms.filter(([form]) => !FORMS.some((one) => one === form))
    .map(([form]) => `${path}.${form}: is not one of ${FORMS.join(', ')}`)
  if (!forms.some(([form]) => form === 'other')) return [`${path}: must be a text, or have the form other`]
  return [...unknown, ...forms.flatMap(([form, one]) => checkText(`${path}.${form}`, one, english, form === 'other'))]
}

/** Checks texts against the English ones. `missing` collects the keys that they do not have. */
function checkTree (path: string, texts: unknown, english: Tree, missing: string[]): string[] {
  if (typeof texts !== 'object' || texts === null || Array.isArray(texts)) return [`${path.slice(0, -1) || 'it'}: must be an object`]
  const own = texts as Record<string, unknown>
  const unknown = Object.keys(own).filter((key) => !Object.hasOwn(english, key)).map((key) => {
    const meant = findNearest(key, Object.keys(english))
    return `${path}${key}: is not a text of this release${meant === undefined ? '' : `, did you mean ${meant}?`}`
  })
  return [...unknown, ...Object.entries(english).flatMap(([key, text]) => {
    const at = `${path}${key}`
    const isGroup = typeof text !== 'string' && !isPlural(text)
    if (!Object.hasOwn(own, key)) {
      if (isGroup) return checkTree(`${at}.`, {}, text, missing)
      missing.push(at)
      return []
    }
    if (typeof text === 'string') return checkText(at, own[key], text)
    return isGroup ? checkTree(`${at}.`, own[key], text, missing) : checkPlural(at, own[key], text)
  })]
}

/** A failure without the path of the file, which the message has already. */
function explain (error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return code === undefined ? message : `cannot be read (${code})`
}

function listFiles (folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.json')).sort()
  } catch (cause) {
    throw new Error(`option oidc.texts: the folder ${explain(cause)}`, { cause })
  }
}

function readTexts (path: string): unknown {
  if (statSync(path).size > FILE_LIMIT) throw new Error(`is larger than ${FILE_LIMIT} bytes`)
  const text = readFileSync(path, 'utf8')
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Error(`is not JSON: ${(cause as Error).message}`, { cause })
  }
}

/** A canonical language tag: a language, and perhaps a script and a region. */
const isLanguage = (tag: string) => /^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|\d{3}))?$/.test(tag)

/**
 * Reads the operator's texts from a folder with a file for each language, such as `fr.json`.
 * @throws Error that names the files and keys
 */
export function readOwnTexts (folder: string): ReadTexts {
  const own: Record<Language, OwnTexts> = {}
  const problems: string[] = []
  const warnings: string[] = []
  for (const file of listFiles(folder)) {
    const language = file.slice(0, -'.json'.length)
    const missing: string[] = []
    try {
      const texts = readTexts(join(folder, file))
      const found = isLanguage(language)
        ? checkTree('', texts, ENGLISH, missing)
        : ['the name must be a language tag, as in fr.json or pt-BR.json']
      problems.push(...found.map((problem) => `${file}: ${problem}`))
      own[language] = texts as OwnTexts
    } catch (error) {
      problems.push(`${file}: ${explain(error)}`)
    }
    // What a file of a built-in language lacks is in that language.
    if (!BUILT_IN.includes(language) && missing.length > 0) {
      const shown = missing.slice(0, 5).join(', ')
      warnings.push(`${file}: ${missing.length} texts are missing and shown in English: ${shown}${missing.length > 5 ? ' and others' : ''}`)
    }
  }
  if (problems.length > 0) {
    const more = problems.length > PROBLEMS ? [`and ${problems.length - PROBLEMS} more`] : []
    throw new Error(`option oidc.texts: ${[...problems.slice(0, PROBLEMS), ...more].join('; ')}`)
  }
  return { own, warnings }
}
