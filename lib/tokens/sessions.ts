import type { Session } from '../../schemas/sessions.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import type { ClientRecord, GrantRecord, TokenRecord, UserRecord } from '../records.ts'
import { scan } from '../lists/scan.ts'
import type { Store } from '../store/port.ts'
import { type Caller, OWNED_BY_USER, type Tokens } from './tokens.ts'

/** Token sessions as their user sees them. */
export function createSessions ({ store, now, tokens, onError }: {
  store: Store, now: Clock, tokens: Tokens, onError: (error: unknown) => void
}) {
  const users = store.collection<UserRecord>('users')
  const clients = store.collection<ClientRecord>('clients')
  const grants = store.collection<GrantRecord>('grants')
  const sessions = store.collection<GrantRecord>('sessions')
  const accessTokens = store.collection<TokenRecord>('access_tokens')
  const refreshTokens = store.collection<TokenRecord>('refresh_tokens')

  /** The caller's own session comes through: its records follow the epoch that has just been moved to. */
  async function keep ({ id, grant_id }: Caller['token'], user_epoch: number): Promise<void> {
    const set = { user_epoch }
    const before = user_epoch - 1
    const follow = async (collection: typeof accessTokens | typeof grants, key: string, epoch: number) => {
      const record = await collection.get(key)
      // Only what stood until this very move: a record that an earlier one ended stays ended.
      if (record?.user_epoch === epoch) await collection.update(key, { set })
      return record
    }
    await follow(accessTokens, id, before)
    if (grant_id === undefined) return
    const grant = await follow(grants, grant_id, before) as GrantRecord | null
    for await (const batch of scan(refreshTokens, { equal: { grant_id } })) {
      for (const record of batch) await follow(refreshTokens, record.id, before)
    }
    if (grant?.session_uid === undefined) return
    for await (const batch of scan(sessions, { equal: { uid: grant.session_uid } })) {
      for (const record of batch) await follow(sessions, record.id, before)
    }
  }

  /** Removes the user's records that an epoch has left behind; a failure leaves them to expire. */
  async function sweep (user_id: string, epoch: number): Promise<void> {
    for (const name of OWNED_BY_USER) {
      const collection = store.collection<TokenRecord>(name)
      try {
        for await (const batch of scan(collection, { equal: { user_id } })) {
          for (const { id, user_epoch } of batch) if (user_epoch < epoch) await collection.delete(id)
        }
      } catch (error) {
        onError(error)
      }
    }
  }

  return {
    /** Batches of the token sessions that stand. The caller's own is marked. */
    async * list (user_id: string, current?: string): AsyncIterable<Session[]> {
      const user = await users.get(user_id)
      if (user === null) return
      const time = toTimestamp(now())
      for await (const batch of scan(grants, { equal: { user_id } })) {
        const ids = [...new Set(batch.map(({ client_id }) => client_id))]
        const known = new Map(await Promise.all(ids.map(async (id) => [id, await clients.get(id)] as const)))
        const standing = batch.flatMap((grant): Session[] => {
          const client = known.get(grant.client_id)
          if (client === null || client === undefined || grant.expired_at <= time) return []
          if (grant.user_epoch < user.epoch || grant.client_epoch < client.epoch) return []
          return [{
            session_id: grant.id,
            client: { client_id: client.id, name: client.name },
            created_at: grant.created_at,
            last_used_at: grant.last_used_at,
            current: grant.id === current
          }]
        })
        if (standing.length > 0) yield standing
      }
    },

    /**
     * Ends all of a user's sessions, sign-ins at browsers and tokens with one write, as a password change does.
     * @param keeping the caller's own token, whose session goes on
     * @throws ErrNotFound
     */
    async end (user_id: string, keeping?: Caller['token']): Promise<void> {
      const moved = await users.update(user_id, { increment: { epoch: 1, revision: 1 } })
      if (moved === null) throw new IdentityError('ErrNotFound', 'user: no such user')
      if (keeping === undefined) {
        await tokens.removeOfUser(user_id)
        return
      }
      // For a moment the caller's own token is dead too: should this be broken off, he signs in again, and nobody stays who should not.
      await keep(keeping, moved.epoch)
      await sweep(user_id, moved.epoch)
    }
  }
}

export type Sessions = ReturnType<typeof createSessions>
