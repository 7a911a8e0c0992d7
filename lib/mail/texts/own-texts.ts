import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { findNearest } from '../../nearest.ts'
import { en as pages } from '../../pages/texts/en.ts'
import { BUILT_IN, type Language, type OwnTexts } from '../../pages/texts/language.ts'
import { type Plural, type Tree, isPlural, listPlaceholders } from '../../pages/texts/template.ts'
import { en as mails } from './en.ts'
import { readMessage } from '../../failure.ts'
import { RENAMED_TEXTS, moveRenamed } from './renamed-texts.ts'

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
  /** Keys that no text of this release has, each with its file. They are not used. */
  unknown: string[]
}

/** What a check of texts collects beside their problems: the keys that they do not have, and keys that this release does not know. */
interface Findings {
  missing: string[]
  unknown: string[]
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

/** Checks texts against the English ones. */
function checkTree (path: string, texts: unknown, english: Tree, found: Findings): string[] {
  if (typeof texts !== 'object' || texts === null || Array.isArray(texts)) return [`${path.slice(0, -1) || 'it'}: must be an object`]
  const own = texts as Record<string, unknown>
  for (const key of Object.keys(own).filter((one) => !Object.hasOwn(english, one))) {
    const meant = findNearest(key, Object.keys(english))
    found.unknown.push(`${path}${key}: is not a text of this release${meant === undefined ? '' : `, did you mean ${meant}?`}`)
  }
  return Object.entries(english).flatMap(([key, text]) => {
    const at = `${path}${key}`
    const isGroup = typeof text !== 'string' && !isPlural(text)
    if (!Object.hasOwn(own, key)) {
      if (isGroup) return checkTree(`${at}.`, {}, text, found)
      found.missing.push(at)
      return []
    }
    if (typeof text === 'string') return checkText(at, own[key], text)
    return isGroup ? checkTree(`${at}.`, own[key], text, found) : checkPlural(at, own[key], text)
  })
}

/** The texts whose keys this release knows. They were checked. */
function pickKnown (texts: object, english: Tree): object {
  const known = Object.entries(texts).filter(([key]) => Object.hasOwn(english, key)).map(([key, own]: [string, object]) => {
    const text = english[key]
    return [key, typeof text === 'string' || text === undefined || isPlural(text) ? own : pickKnown(own, text)]
  })
  return Object.fromEntries(known) as object
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
    throw new Error(`is not JSON: ${readMessage(cause)}`, { cause })
  }
}

/** A canonical language tag: a language, and perhaps a script and a region. */
const isLanguage = (tag: string) => /^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|\d{3}))?$/.test(tag)

/** As many as a message has room for. */
const limit = (lines: string[]) =>
  lines.length > PROBLEMS ? [...lines.slice(0, PROBLEMS), `and ${lines.length - PROBLEMS} more`] : lines

/**
 * Reads the operator's texts from a folder with a file for each language, such as `fr.json`. A renamed key is a warning, and its text is
 * used under the new name. An unknown key is reported, and its text is not used: an upgrade
 * that drops a text must not stop a service.
 * @throws Error that names the files and keys
 */
export function readOwnTexts (folder: string, renamed = RENAMED_TEXTS): ReadTexts {
  const own: Record<Language, OwnTexts> = {}
  const problems: string[] = []
  const warnings: string[] = []
  const unknown: string[] = []
  for (const file of listFiles(folder)) {
    const language = file.slice(0, -'.json'.length)
    const inFile = (line: string) => `${file}: ${line}`
    const found: Findings = { missing: [], unknown: [] }
    try {
      const texts = readTexts(join(folder, file))
      warnings.push(...moveRenamed(texts, renamed).map(inFile))
      const wrong = isLanguage(language)
        ? checkTree('', texts, ENGLISH, found)
        : ['the name must be a language tag, as in fr.json or pt-BR.json']
      problems.push(...wrong.map(inFile))
      unknown.push(...found.unknown.map(inFile))
      if (wrong.length === 0) own[language] = pickKnown(texts as object, ENGLISH)
    } catch (error) {
      problems.push(`${file}: ${explain(error)}`)
    }
    // What a file of a built-in language lacks is in that language.
    if (!BUILT_IN.includes(language) && found.missing.length > 0) {
      const shown = found.missing.slice(0, 5).join(', ')
      const more = found.missing.length > 5 ? ' and others' : ''
      warnings.push(`${file}: ${found.missing.length} texts are missing and shown in English: ${shown}${more}`)
    }
  }
  if (problems.length > 0) throw new Error(`option oidc.texts: ${limit(problems).join('; ')}`)
  return { own, warnings, unknown: limit(unknown) }
}
