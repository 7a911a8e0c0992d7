import type { FastifyRequest } from 'fastify'
import { readField } from '../../plugins/sign-in-forms.ts'

/** A field with an entry on each line. Empty lines do not count. */
export const readLines = (request: FastifyRequest, name: string): string[] =>
  readField(request, name).split('\n').map((line) => line.trim()).filter((line) => line !== '')

/** The end of a day of a form, in UTC. Undefined for none. */
export function readDay (request: FastifyRequest, name: string): string | undefined {
  const day = readField(request, name).trim().slice(0, 64)
  return day === '' ? undefined : `${day}T23:59:59.999Z`
}
