import type { Recorder } from '../events/recorder.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { ENDED_BY_EPOCH, type Tickets } from './tickets.ts'

/** Removes a user. Resolves to false when there is no such user. */
export type RemoveUser = (user_id: string) => Promise<boolean>

/** The one way to remove a user, with their tokens and the links that have their address. Their clients are kept. */
export function createUserRemoval ({ recorder, tokens, tickets, onError }: {
  recorder: Pick<Recorder, 'remove'>, tokens: Pick<Tokens, 'deleteOfUser'>, tickets: Pick<Tickets, 'removeOf'>, onError: (error: unknown) => void
}): RemoveUser {
  return async (user_id) => {
    if (!await recorder.remove('users', user_id, { type: 'user.deleted', id: user_id })) return false
    tokens.deleteOfUser(user_id)
    await tickets.removeOf(user_id, [...ENDED_BY_EPOCH, 'undo']).catch(onError)
    return true
  }
}
