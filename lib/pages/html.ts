/** A text that is already HTML and is not escaped again. */
export class Html {
  readonly text: string

  constructor (text: string) {
    this.text = text
  }

  toString (): string {
    return this.text
  }
}

type Value = string | number | Html | false | null | undefined | readonly Value[]

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function escape (value: Value): string {
  if (value === undefined || value === null || value === false) return ''
  if (value instanceof Html) return value.text
  if (Array.isArray(value)) return value.map(escape).join('')
  return String(value).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
}

/** Builds HTML. Values are escaped unless they are `Html`; null, undefined and false render as nothing. */
export function html (parts: TemplateStringsArray, ...values: Value[]): Html {
  return new Html(parts.reduce((text, part, index) => text + escape(values[index - 1]) + part))
}
