import { hideCredentials } from '../store/index.ts'

/** The parts of a JSON Schema by which a value is shown. */
export interface Term {
  default?: unknown
  description?: string
  /** No output has the value: of a URL only the host and the path, of anything else that it is set. */
  writeOnly?: boolean
  anyOf?: readonly Term[]
  items?: Term
  properties?: Readonly<Record<string, Term>>
  patternProperties?: Readonly<Record<string, Term>>
  additionalProperties?: Term | boolean
}

/** What stands for a secret, and for what no schema describes. */
const SET = 'set'

/** What a secret may show of itself: the server of a URL, without the user, the password and the query. */
function hideSecret (text: string): string {
  if (/^(sqlite|mongodb(\+srv)?):/.test(text)) return hideCredentials(text)
  const url = /^(https?|smtps?):\/\//.test(text) ? URL.parse(text) : null
  return url === null ? SET : `${url.protocol}//${url.host}${url.pathname}`
}

/** A text without the credentials of a URL. Of an image that is in the text itself, its type and its length. */
function showText (text: string): string {
  if (text.startsWith('data:')) return `${text.slice(0, text.search(/[;,]/))}, ${text.length} characters`
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i, '$1')
}

/** The schemas of a part of a value. */
const pick = (terms: readonly Term[], find: (term: Term) => Term | undefined): Term[] => terms.map(find).filter((term) => term !== undefined)

/** The choices of a schema. */
const listChoices = (term: Term): Term[] => term.anyOf === undefined ? [term] : term.anyOf.flatMap(listChoices)

/** The schema of a property. */
function findPart ({ properties = {}, patternProperties = {}, additionalProperties }: Term, key: string): Term | undefined {
  if (Object.hasOwn(properties, key)) return properties[key]
  return Object.values(patternProperties)[0] ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
}

function show (terms: readonly Term[], value: unknown): unknown {
  if (value === undefined || value === null) return value
  const choices = terms.flatMap(listChoices)
  if (choices.length === 0) return SET
  if ([...terms, ...choices].some(({ writeOnly }) => writeOnly === true)) return typeof value === 'string' ? hideSecret(value) : SET
  if (typeof value === 'boolean' || typeof value === 'number') return value
  if (typeof value === 'string') return showText(value)
  if (Array.isArray(value)) return value.map((item: unknown) => show(pick(choices, ({ items }) => items), item))
  if (typeof value !== 'object') return SET
  return Object.fromEntries(Object.entries(value).map(([key, part]: [string, unknown]) => [key, show(pick(choices, (term) => findPart(term, key)), part)]))
}

/**
 * The value of a setting as it may be shown. This alone hides secrets: those that the schema marks as `writeOnly`, whatever the schema does not
 * describe, and the credentials of every URL.
 */
export function showValue (schema: Term, value: unknown): unknown {
  return show([schema], value)
}
