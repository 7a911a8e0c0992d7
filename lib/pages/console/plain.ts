import { type Html, html } from '../html.ts'

/** Characters that change what people read without being seen: control characters, changes of direction, and characters without a glyph. */
const UNSEEN = /([\p{Cc}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\u2028\u2029\ufff9-\ufffb])/u

const toCode = (character: string) => `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`

/** A text from outside, with each character that would not be seen as its code, isolated from the direction of the text around it. */
export function plain (text: string): Html {
  const pieces = text.split(UNSEEN)
  return html`<bdi>${pieces.map((piece, index) => index % 2 === 1 ? html`<span class="unseen">${toCode(piece)}</span>` : piece)}</bdi>`
}
