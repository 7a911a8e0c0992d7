import type { ImportItem, ImportOptions } from '../../schemas/import.ts'
import { Lazy } from '../lazy.ts'
import type { Actor } from '../roles.ts'
import type { Invited, InviteOptions } from './invite-imported.ts'
import type { ImportRun } from './import-users.ts'
import type { Withdrawn } from './withdraw.ts'
import type { ImportServices } from './parts.ts'

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
