import { randomBytes } from 'node:crypto'
import { hidden } from './parts.ts'

/** The field with the one-time id of a form. All forms of one page have the same. */
export const FORM_ID = 'form_id'

/** 128 random bits, base64url. */
export const FORM_ID_PATTERN = /^[\w-]{22}$/

const FORM = /<form method="post"[^>]*>\n/g

/** Gives every form of a page its id. What people have typed is escaped, so no form in a page is theirs. */
export function identifyForms (page: string, id = randomBytes(16).toString('base64url')): string {
  return page.replaceAll(FORM, (tag) => `${tag}${hidden(FORM_ID, id).text}`)
}
