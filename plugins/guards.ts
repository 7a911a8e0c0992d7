import type { FastifyInstance } from 'fastify'
import type { Clock } from '../lib/clock.ts'
import type { RoleNames } from '../lib/roles.ts'
import type { Tokens } from '../lib/tokens/tokens.ts'
import { createAdmission, type GuardOptions } from './admission.ts'
import { createAdmit, type Identity, toGuard } from './auth.ts'
import { createProtect } from './protect.ts'

interface GuardParts {
  tokens: Pick<Tokens, 'authenticate'>
  roles: RoleNames
  /** Compared with the times of sign-ins. */
  now: Clock
  /** The authorization server that metadata name; absent where there is none. */
  getIssuer: (() => string) | undefined
}

/** The three forms of one check, for hosts. @param app serves the metadata of protected resources */
export function createGuards (app: FastifyInstance, { tokens, roles, now, getIssuer }: GuardParts): Pick<Identity, 'guard' | 'check' | 'protect'> {
  const admitBy = (rule: GuardOptions = {}) => createAdmit(tokens, createAdmission(roles, rule, now))
  return {
    guard: (rule) => toGuard(admitBy(rule)),
    check: async (request, rule) => await admitBy(rule)(request),
    protect: createProtect(app, admitBy, getIssuer)
  }
}
