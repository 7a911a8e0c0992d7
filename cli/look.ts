/**
 * What is for eyes only: the width of a terminal, colours, broken lines. Output that is no terminal stays as it is.
 * @module
 */
import { styleText } from 'node:util'

/** Columns of a terminal that does not say its own, and of every help text. */
export const WIDTH = 80

/** Fewer columns than these are not worth a table. */
const NARROW = 40

type Format = Parameters<typeof styleText>[0]

/** What a stream can show. */
export interface Look {
  /** Columns of the terminal. Undefined: it is no terminal, and nothing is shortened or broken. */
  width: number | undefined
  /** Formats text where there are colours, see `hasColor`. */
  paint (format: Format, text: string): string
}

/** Whether text on a stream has colours: on a terminal, and never with NO_COLOR (no-color.org). */
export function hasColor (stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  return stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
}

/** What a stream can show in this environment. */
export function findLook (stream: { isTTY?: boolean, columns?: number }, env: NodeJS.ProcessEnv): Look {
  if (stream.isTTY !== true) return { width: undefined, paint: (_format, text) => text }
  const isColored = hasColor(stream, env)
  return {
    // A pseudo-terminal without a size reports 0 columns.
    width: Math.max(NARROW, stream.columns || WIDTH),
    paint: (format, text) => isColored ? styleText(format, text, { validateStream: false }) : text
  }
}

let segmenter: Intl.Segmenter | undefined

/** Created for the first text that needs it: Unicode data takes a hundredth of the start. */
function segmentText (text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter()
  return segmenter.segment(text)
}

/** Characters of two columns: those of East Asia, and emoji. */
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u

const isPlain = (text: string): boolean => /^[\x20-\x7e]*$/.test(text)

/** The columns that a text takes. */
export function measure (text: string): number {
  if (isPlain(text)) return text.length
  let width = 0
  for (const { segment } of segmentText(text)) width += WIDE.test(segment) ? 2 : 1
  return width
}

/** Cuts a text to a number of columns. A cut text ends in an ellipsis. */
export function cut (text: string, width: number): string {
  if (measure(text) <= width) return text
  let [kept, taken] = ['', 0]
  for (const { segment } of segmentText(text)) {
    taken += measure(segment)
    if (taken > width - 1) break
    kept += segment
  }
  return `${kept.trimEnd()}…`
}

export const pad = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - measure(text)))

/**
 * Breaks a text at its spaces into lines of a width, and indents all but the first. What has no space stays whole: a link, a secret.
 * @param start columns of the first line that are taken
 */
export function wrap (text: string, { width = WIDTH, indent = 0, start = indent }: { width?: number, indent?: number, start?: number } = {}): string {
  const lines: string[] = []
  let [line, taken] = ['', start]
  for (const word of text.split(' ')) {
    const length = measure(word)
    if (line !== '' && taken + 1 + length > width) {
      lines.push(line);
      [line, taken] = [word, indent + length]
    } else {
      taken += length + (line === '' ? 0 : 1)
      line = line === '' ? word : `${line} ${word}`
    }
  }
  return [...lines, line].join(`\n${' '.repeat(indent)}`)
}
