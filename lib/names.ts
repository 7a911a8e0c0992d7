import { checkText } from './checks.ts'
import { paramError } from './errors.ts'

/** Kinds of refused characters, each with its name in an error. The first matching kind names a character. */
const KINDS: [string, RegExp][] = [
  ['control character', /\p{Cc}/u],
  ['line separator', /[\p{Zl}\p{Zp}]/u],
  ['bidirectional control', /\p{Bidi_Control}/u],
  ['invisible character', /[\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u]
]

/** Scripts whose spelling uses joiners. */
const JOINING = [
  'Arabic',
  'Bengali',
  'Devanagari',
  'Gujarati',
  'Gurmukhi',
  'Kannada',
  'Khmer',
  'Malayalam',
  'Mongolian',
  'Myanmar',
  'Oriya',
  'Sinhala',
  'Syriac',
  'Tamil',
  'Telugu'
]
  .map((script) => `\\p{Script=${script}}`).join('')

/** Invisible characters that affect the visible text: joiners within these scripts and emoji, and an emoji's style. */
const VISIBLE = new RegExp(`(?<=[${JOINING}])[\\u200c\\u200d](?=[${JOINING}])|` +
  '(?<=[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])\\u200d(?=\\p{Extended_Pictographic})|(?<=\\p{Extended_Pictographic})\\ufe0f', 'gu')

/**
 * Checks a name that people base decisions on, such as an app's name on the consent page. It must not reorder, break or hide text.
 * @throws ErrParam that names the character
 */
export function checkName (field: string, text: string): string {
  checkText(field, text)
  const rest = text.replace(VISIBLE, '')
  for (const [kind, pattern] of KINDS) {
    const found = pattern.exec(rest)?.[0].codePointAt(0)
    if (found !== undefined) throw paramError(field, `must not contain the ${kind} U+${found.toString(16).toUpperCase().padStart(4, '0')}`)
  }
  return text
}
