import { randomBytes } from 'node:crypto'

/** The field that proves that a form is from a page of this browser. */
export const XSRF = 'xsrf'

const FIELD = new RegExp(`(<input type="hidden" name="${XSRF}" value=")([^"]*)(">)`, 'g')

/** Random bytes, and the bytes of the token combined with them by exclusive or. */
const MASKED = /^~([\w-]+)~([\w-]+)$/

function combine (one: Buffer, other: Buffer): Buffer {
  return Buffer.from(one.map((byte, index) => byte ^ (other[index] ?? 0)))
}

function mask (token: string): string {
  const bytes = Buffer.from(token)
  const random = randomBytes(bytes.length)
  return `~${random.toString('base64url')}~${combine(random, bytes).toString('base64url')}`
}

/**
 * Masks the tokens of a page, each time with other bytes. A page may repeat what somebody has put into its URL. If it also had the same
 * token each time, the length of the compressed page would tell how much of the token the URL has (BREACH).
 */
export function maskXsrf (page: string): string {
  return page.replaceAll(FIELD, (_field, start: string, token: string, end: string) => `${start}${mask(token)}${end}`)
}

/** Removes the mask from the token of a form. A token without a mask, as on a page of an earlier release, stays as it is. */
export function unmaskXsrf (text: string): string {
  const [, random, bytes] = MASKED.exec(text) ?? []
  return random === undefined || bytes === undefined
    ? text
    : combine(Buffer.from(random, 'base64url'), Buffer.from(bytes, 'base64url')).toString()
}
