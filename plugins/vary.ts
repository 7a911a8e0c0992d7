import type { FastifyReply } from 'fastify'

/** Adds to the Vary field, and keeps the names that the app has set. */
export function addVary (reply: FastifyReply, value: string | string[]): void {
  const names = new Map<string, string>()
  for (const name of [reply.getHeader('vary') ?? [], value].flat().join(',').split(',')) {
    if (name.trim() !== '') names.set(name.trim().toLowerCase(), name.trim())
  }
  reply.header('vary', names.has('*') ? '*' : [...names.values()].join(', '))
}
