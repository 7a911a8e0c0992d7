import type { TokenRecord } from '../records/token.ts'
import type { Timers } from '../timers.ts'
import type { Recorder } from './recorder.ts'
import { createSeries } from './series.ts'

/**
 * Records that tokens of clients that act for themselves were revoked. Anyone who has a client can get and revoke such tokens in a
 * loop, so those of one owner are summed up: the first one in an hour is an event of its own, and further ones are one event a minute.
 */
export function createRevocations (parts: { recorder: Pick<Recorder, 'insert' | 'measure'>, onError: (error: unknown) => void, timers?: Timers }) {
  const { admit, settle, flush, close } = createSeries({ ...parts, singles: 1, outcome: 'success' })
  return {
    /** Resolves when the event is durable, or counted. */
    async record ({ id, user_id: owner_id, client_id }: Pick<TokenRecord, 'id' | 'user_id' | 'client_id'>): Promise<void> {
      const happening = { type: 'token.revoked' as const, owner_id, client_id, id }
      const summary = { ...happening, id: '' }
      if (admit(happening, { name: owner_id, user_id: owner_id, known: owner_id, summary })) await parts.recorder.insert(happening)
    },

    settle,
    flush,
    close
  }
}

export type Revocations = ReturnType<typeof createRevocations>
