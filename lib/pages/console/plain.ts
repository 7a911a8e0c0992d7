import { type Html, html } from '../html.ts'

/** Control characters, and those that turn or hide the text around them. */
// eslint-disable-next-line no-control-regex
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/u

const toCode = (character: string) => `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`

/** A text from outside, with each character that would not be seen as its code, isolated from the direction of the text around it. */
export function plain (text: string): Html {
  const pieces = text.split(new RegExp(`(${UNSEEN.source})`, 'u'))
  return html`<bdi>${pieces.map((piece, index) => index % 2 === 1 ? html`<span class="unseen">${toCode(piece)}</span>` : piece)}</bdi>`
}
