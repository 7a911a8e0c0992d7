import type { ImportLine } from '../../schemas/import.ts'

/** What the former system is asked: whether a password is right, or who has an account, for somebody who has lost theirs. */
export type Question = { type: 'password', account: string, password: string } | { type: 'account', account: string }

/** What it may say of a person. Anything else in its answer is ignored: roles above all. */
export type Person = Pick<ImportLine, 'id' | 'name' | 'email' | 'email_verified'>

export type Answer = { ok: false } | { ok: true, person: Person }

/** Puts a question. Rejects without an answer. */
export type Put = (question: Question, signal: AbortSignal) => Promise<unknown>

/** The former system gave no answer. The message never contains text of its own. */
export class FormerSystemError extends Error {
  override readonly name = 'FormerSystemError'
}

const FIELDS = ['id', 'name', 'email', 'email_verified'] as const

/** @throws FormerSystemError for anything that is no answer */
export function readAnswer (value: unknown): Answer {
  if (typeof value !== 'object' || value === null || typeof (value as { ok?: unknown }).ok !== 'boolean') throw new FormerSystemError('an answer without ok')
  const given = value as { ok: boolean } & Record<string, unknown>
  if (!given.ok) return { ok: false }
  return { ok: true, person: Object.fromEntries(FIELDS.filter((field) => (given[field] ?? null) !== null).map((field) => [field, given[field]])) }
}
