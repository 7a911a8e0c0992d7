import type { Recorder } from '../events/recorder.ts'
import type { UserRecord } from '../records.ts'
import type { Tokens } from '../tokens/tokens.ts'
import type { Administrators } from '../users/administrators.ts'
import type { RemoveUser } from '../users/users.ts'
import type { Credentials } from '../ways/credentials.ts'
import { ENDED_BY_EPOCH, type Tickets } from './tickets.ts'

/** The one way to remove a user, with their tokens, their ways and the links that have their address. Their clients are kept. */
export function createUserRemoval ({ recorder, tokens, tickets, ways, administrators, onError }: {
  recorder: Pick<Recorder, 'remove'>,
  tokens: Pick<Tokens, 'deleteOfUser'>,
  tickets: Pick<Tickets, 'removeOf'>,
  ways: Pick<Credentials, 'removeOf'>,
  administrators: Pick<Administrators, 'guard'>,
  onError: (error: unknown) => void
}): RemoveUser {
  return async (user_id, { confirm, isForced } = {}) => {
    const isRemoved = await administrators.guard(async (permit) => await recorder.remove('users', user_id, { type: 'user.deleted', id: user_id }, async (record) => {
      await permit(record as UserRecord, null)
      await confirm?.()
    }), isForced)
    if (!isRemoved) return false
    tokens.deleteOfUser(user_id)
    await Promise.all([tickets.removeOf(user_id, [...ENDED_BY_EPOCH, 'undo']), ways.removeOf(user_id)]).catch(onError)
    return true
  }
}
