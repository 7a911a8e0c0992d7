import type { KeyObject } from 'node:crypto'
import type { ImportItem, ImportOptions } from '../../schemas/import.ts'
import type { Clock } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Decoys } from '../hashes/decoys.ts'
import { Lazy } from '../lazy.ts'
import type { UserRecord } from '../records.ts'
import type { Actor, RoleNames } from '../roles.ts'
import type { MaybePromise, Store } from '../store/port.ts'
import type { Timers } from '../timers.ts'
import type { FormerImports } from '../users/former-imports.ts'
import type { StoredUsers } from '../users/stored-users.ts'
import type { Invited, InviteOptions } from './invite-imported.ts'
import type { ImportRun } from './import-users.ts'
import type { Withdrawn } from './withdraw.ts'

export interface ImportServices {
  store: Store
  now: Clock
  box: Pick<SecretBox, 'seal'>
  /** The key of the hashes by which two imported people cannot share an authenticator app. */
  seedKey: KeyObject
  stored: Pick<StoredUsers, 'insertUser' | 'changeUser' | 'removeUser'>
  roles: RoleNames
  /** The configured cost of our own hashes. */
  cost: number
  /** Whether people can have second factors. */
  canAddFactors: boolean
  decoys: Pick<Decoys, 'register'>
  /** The imported people who were deleted. */
  formerImports: Pick<FormerImports, 'has'>
  recorder: Pick<Recorder, 'insert'>
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
  /** Receives failures that no caller waits for. */
  onError: (error: unknown) => void
  /** Absent: those of Node. */
  timers?: Timers
}

/** Moves people in from another system (docs/import.md). Nothing of it is loaded before it is used. */
export interface Imports {
  /**
   * Begins a run. Reading its verdicts does the work.
   * @throws ErrBusy while another import runs
   */
  importUsers (groups: AsyncIterable<readonly ImportItem[]>, options: ImportOptions, actor?: Pick<Actor, 'confirm' | 'signal'>): Promise<ImportRun>
  /** The lines of NDJSON, for `importUsers`. */
  readLines (pieces: AsyncIterable<Buffer>): AsyncIterable<ImportItem[]>
  /**
   * Removes the people of a run who have never signed in. A batch at a time.
   * @throws ErrParam when there was no such run
   */
  withdraw (run: string, actor?: Pick<Actor, 'confirm'>): AsyncIterable<Withdrawn[]>
  /** Invites the people of a source who cannot sign in yet, slowly: by the mail of an invitation. */
  inviteImported (source: string, actor: Actor, options?: InviteOptions): AsyncIterable<Invited>
}

export function createImports (services: ImportServices): Imports {
  const imports = new Lazy(async () => (await import('./import-users.ts')).createImport(services))
  return {
    async importUsers (groups, options, actor) {
      return (await imports.get())(groups, options, actor)
    },
    async * readLines (pieces) {
      const { readLines } = await import('./read-lines.ts')
      yield * readLines(pieces)
    },
    async * withdraw (run, actor) {
      const { withdraw } = await import('./withdraw.ts')
      yield * withdraw(services, run, actor)
    },
    async * inviteImported (source, actor, options) {
      const { inviteImported } = await import('./invite-imported.ts')
      yield * inviteImported(services, source, actor, options)
    }
  }
}
