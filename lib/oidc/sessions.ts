import type { KoaContextWithOIDC } from 'oidc-provider'
import { scan } from '../lists/scan.ts'
import type { Store } from '../store/port.ts'
import { hashToken } from '../tokens/tokens.ts'
import { endBoundGrants } from './grants.ts'
import { type AdapterParts, type ModelAdapter, type Payload, strip } from './parts.ts'
import { USER_LINK, findStanding, type Standing } from './standing.ts'

/** A sign-in at a browser. Its id is the hash of the cookie's value. */
export interface SessionRecord extends Standing {
  /** Names it for as long as it lasts; the cookie's value changes. */
  uid: string
  created_at: string
  payload: Payload
}

/** The epochs of the sign-ins that were read for a request, by their uid: oidc-provider keeps no field of ours. */
const epochs = new WeakMap<object, Map<string, number>>()

function remember (ctx: KoaContextWithOIDC, uid: string, epoch: number): void {
  const known = epochs.get(ctx) ?? new Map<string, number>()
  epochs.set(ctx, known.set(uid, epoch))
}

/** What a sign-in says of itself, see routes/interaction.ts. */
export interface SignIn {
  accountId: string
  amr: string[]
  user_epoch: number
}

/**
 * The epoch under which the user of this request signed in: of the sign-in that was made just now, or of the one that was read.
 * Never that of now, because a password change since then must count.
 */
export function requireUserEpoch (ctx: KoaContextWithOIDC): number {
  const { result, session } = ctx.oidc
  const fresh = (result?.login as unknown as SignIn | undefined)?.user_epoch
  const epoch = fresh ?? epochs.get(ctx)?.get(session?.uid ?? '')
  if (epoch === undefined) throw new Error('a sign-in without an epoch')
  return epoch
}

/** Ends a sign-in at a browser, with the token sessions that were to last no longer. */
export async function endSession (store: Store, uid: string): Promise<void> {
  await store.collection('sessions').deleteMany({ equal: { uid } })
  await endBoundGrants(store, uid)
}

/** Sign-ins at browsers. */
export function adaptSessions ({ store, times, getContext }: AdapterParts): ModelAdapter {
  const sessions = store.collection<SessionRecord>('sessions')

  async function find (key: string): Promise<Payload | undefined> {
    const found = await findStanding(sessions, key, times.now(), USER_LINK)
    if (found === null) return undefined
    const { payload, uid, user_epoch, created_at, expired_at } = found.record
    const ctx = getContext()
    if (ctx !== undefined && user_epoch !== undefined) remember(ctx, uid, user_epoch)
    return { ...payload, iat: times.toEpoch(created_at), exp: times.toEpoch(expired_at) }
  }

  /** A sign-out at the browser ends the token sessions that were to last no longer; of all clients, or of the one that asked. */
  async function endBound (): Promise<void> {
    const oidc = getContext()?.oidc
    const uid = oidc?.session?.uid
    if (oidc?.route !== 'end_session_confirm' || uid === undefined) return
    if (oidc.params?.logout !== undefined) await endBoundGrants(store, uid)
    else if (oidc.client !== undefined) await endBoundGrants(store, uid, oidc.client.clientId)
  }

  return {
    async upsert (id, payload, expiresIn) {
      const ctx = getContext()
      const signedIn = typeof payload.accountId === 'string' && ctx !== undefined
      await sessions.put({
        id: hashToken(id),
        uid: payload.uid as string,
        ...(signedIn && { user_id: payload.accountId as string, user_epoch: requireUserEpoch(ctx) }),
        ...times.lifetime(expiresIn),
        payload: strip(payload)
      })
      await endBound()
    },
    async find (id) {
      const payload = await find(hashToken(id))
      return payload && { ...payload, jti: id }
    },
    async findByUid (uid) {
      // More than one when two tabs signed in at once: any that stands will do, the caller looks at whose it is.
      for await (const batch of scan(sessions, { equal: { uid } })) {
        for (const { id } of batch) {
          const payload = await find(id)
          if (payload !== undefined) return payload
        }
      }
      return undefined
    },
    async destroy (id) {
      await sessions.delete(hashToken(id))
      await endBound()
    }
  }
}
