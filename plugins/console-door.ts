import type { FastifyInstance } from 'fastify'
import type { Acr } from '../lib/proofs.ts'
import type { UserRecord } from '../lib/records/user.ts'
import { readNetworks } from '../lib/outbound/addresses.ts'
import { holdsRole } from '../lib/roles.ts'
import type { AccessRule, ConsoleOptions } from '../schemas/options.ts'
import { ACCESS } from './access-table.ts'
import { listRolesOf } from './access.ts'

/**
 * The value of `next` at the sign-in page that leads to a page of the console: a path as a URL has it, which a header can carry, and that
 * leads nowhere above it.
 */
export const CONSOLE_NEXT = /^console((?:\/(?!(?:\.|%2[Ee]){1,2}(?:\/|$))(?:[\w.~!$&'()*+,;=:@-]|%[\dA-Fa-f]{2}){1,700}){0,4})$/

/** The page of the console that a sign-in leads to. Undefined for another one. */
export function readConsoleNext (next: unknown): string | undefined {
  return typeof next === 'string' ? CONSOLE_NEXT.exec(next)?.[1] : undefined
}

/** The operations that need a role, so that whoever may call one has something to do in the console. */
function listByRole (app: FastifyInstance, access: Record<string, AccessRule>): Map<string, string[]> {
  return new Map(Object.keys(ACCESS).map((name) => [name, listRolesOf(app, name, access)] as const))
}

/** Who may open the console, and how they must have signed in for it. */
export function createConsoleDoor (app: FastifyInstance, { access, options }: { access: Record<string, AccessRule>, options: ConsoleOptions }) {
  const roles = listByRole(app, access)
  const holdsOne = (user: Pick<UserRecord, 'roles'>, names: readonly string[]) => names.some((role) => role !== 'self' && holdsRole(user.roles, role))
  const may = (user: Pick<UserRecord, 'roles'>, name: string): boolean => holdsOne(user, roles.get(name) ?? [])
  const isOpenTo = (user: Pick<UserRecord, 'roles'>): boolean => Object.keys(ACCESS).some((name) => may(user, name))
  const { acr, adminNetworks } = options

  return {
    may,
    isOpenTo,
    /** Whether the console is there for an address. Elsewhere it looks like a path that there is not. */
    isNear: adminNetworks === undefined ? () => true : readNetworks(adminNetworks),
    /** What a sign-in on the way to the console asks of a person. */
    toAsked: (user: Pick<UserRecord, 'roles'>): { acr?: Acr, enrols?: boolean } => acr !== undefined && isOpenTo(user) ? { acr, enrols: true } : {}
  }
}

export type ConsoleDoor = ReturnType<typeof createConsoleDoor>
