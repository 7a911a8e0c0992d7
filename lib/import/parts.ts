import type { KeyObject } from 'node:crypto'
import type { Base } from '../base.ts'
import type { Decoys } from '../hashes/decoys.ts'
import type { UserRecord } from '../records/user.ts'
import type { Actor } from '../roles.ts'
import type { MaybePromise } from '../store/port.ts'
import type { Timers } from '../timers.ts'
import type { FormerImports } from '../users/former-imports.ts'
import type { StoredUsers } from '../users/stored-users.ts'

/** What an import is opened with. */
export interface ImportServices extends Base {
  /** The key of the hashes by which two imported people cannot share an authenticator app. */
  seedKey: KeyObject
  stored: Pick<StoredUsers, 'insertUser' | 'changeUser' | 'removeUser'>
  /** The configured cost of our own hashes. */
  cost: number
  /** Whether people can have second factors. */
  canAddFactors: boolean
  decoys: Pick<Decoys, 'register'>
  /** The imported people who were deleted. */
  formerImports: Pick<FormerImports, 'has'>
  /**
   * Milliseconds since the service last compared a password: 0 while it does, Infinity if it does not or did not. Undefined where a
   * service runs that this process cannot see into.
   */
  countRest: () => MaybePromise<number | undefined>
  /** Mails an invitation to somebody who cannot sign in yet. @returns whether there is a mail */
  invite: (user_id: string, actor: Actor, language?: string) => Promise<boolean>
  /** The upstream with this issuer. Absent: there are none. */
  findUpstream?: (issuer: string) => string | undefined
  /** Whether the upstream with this id is an authority on addresses. Absent: none is. */
  isAuthority?: (upstream: string) => boolean
  /** Whether somebody has a way to sign in. */
  hasWayIn: (user: UserRecord) => Promise<boolean>
  /** Absent: those of Node. */
  timers?: Timers
}
