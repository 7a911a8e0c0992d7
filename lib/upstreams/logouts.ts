import type { Base } from '../base.ts'
import { defined } from '../defined.ts'
import { nameCaller } from '../events/origin.ts'
import type { Turn } from '../fair-queue.ts'
import type { Upstream } from '../../schemas/upstream.ts'
import type { UserRecord } from '../records/user.ts'
import type { IdentityEnds } from '../sessions/identity-ends.ts'
import { toSessionKey, toWayKey } from '../way.ts'
import { showIdentity } from '../ways/identity.ts'
import type { WayService } from '../ways/ways.ts'
import { type NewEnd, type UpstreamEndRecord, type UpstreamEnds, ends } from './ends.ts'
import { type LogoutClaims, LogoutTokenError } from './logout-token.ts'
import type { Upstreams } from './upstreams.ts'

export interface UpstreamLogoutParts extends Base {
  ends: UpstreamEnds
  identityEnds: IdentityEnds
  ways: Pick<WayService, 'find'>
  verifyLogout: Upstreams['verifyLogout']
  /** The upstream by which alone a user signs in. */
  findOnly: (user: UserRecord) => string | undefined
  /** Ends the personal access tokens of a user. */
  endPersonalTokens: (user_id: string) => Promise<void>
}

/** Ends what came of a session or an identity at another provider, when the provider says so. */
export function createUpstreamLogouts ({ store, ends: records, identityEnds, ways, recorder, verifyLogout, findOnly, endPersonalTokens }: UpstreamLogoutParts) {
  const users = store.collection<UserRecord>('users')

  /** What a token ends. A `sid` that nothing has here is one of sign-ins that came without it, if the token names the identity too. */
  async function describe (upstream: Upstream, issuer: string, { sub, sid }: LogoutClaims): Promise<NewEnd> {
    const session = sid === undefined ? undefined : toSessionKey(issuer, sid)
    const isKnown = session !== undefined && (await identityEnds.findHolders(session)).size > 0
    const which: NewEnd['of_identity'] = session === undefined ? 'all' : isKnown ? undefined : 'bare'
    const isOfIdentity = sub !== undefined && which !== undefined
    return defined({
      upstream: upstream.id,
      sid: session,
      identity: isOfIdentity ? toWayKey('upstream', issuer, sub) : undefined,
      of_identity: isOfIdentity ? which : undefined,
      // The end of one session is not the end of what was to outlast it, unless the provider is all that lets the person in.
      offline: session === undefined || upstream.only === true
    })
  }

  /** Ends everything that an end is about. It may be called again. */
  async function carryOut (end: UpstreamEndRecord): Promise<void> {
    const { id, upstream, sid, identity, offline } = end
    if (sid !== undefined) await identityEnds.endSession(sid, offline)
    const found = identity === undefined ? null : await ways.find(identity)
    if (found !== null) {
      const { user, held } = found
      await identityEnds.endIdentity(user.id, held.id, offline, ({ session, asked_at }) => (
        ends(end, { identity, session, asked_at })))
      // The whole identity, and not one of its sessions: what lets the person in alone has let them go.
      if (sid === undefined && findOnly(user) === upstream) await endPersonalTokens(user.id)
    }
    await records.finish(id)
  }

  /** The users whose sign-ins an end is about, each with the key of their identity. */
  async function findUsers ({ sid, identity }: UpstreamEndRecord): Promise<Map<string, string>> {
    const found = new Map<string, string>()
    for (const [user_id, way] of sid === undefined ? [] : await identityEnds.findHolders(sid)) {
      found.set(user_id, (await users.get(user_id))?.ways?.[way]?.key ?? '')
    }
    if (identity === undefined) return found
    const holder = await ways.find(identity)
    return holder === null ? found : found.set(holder.user.id, identity)
  }

  return {
    /**
     * Receives a logout token (OpenID Connect Back-Channel Logout 1.0, 2.5), and ends what it is about.
     * @param turn of whoever has sent it
     * @throws LogoutTokenError, UpstreamError `off`, `busy`, `down`
     */
    async receive (id: string, token: string, turn?: Turn): Promise<void> {
      const { upstream, issuer, claims } = await verifyLogout(id, token, turn)
      const end = await records.begin(claims.jti, await describe(upstream, issuer, claims))
      if (end === null) throw new LogoutTokenError('jti: was used before')
      nameCaller({})
      try {
        // Each decides the end with its event, so that the relay finishes it should this process die.
        for (const [user_id, key] of await findUsers(end)) {
          const via = showIdentity({ upstream: id, key })
          await recorder.end('upstream_ends', end.id, `${end.created_at} ${user_id}`, { type: 'identity.signed_out', id: user_id, via })
        }
        await carryOut(end)
      } catch (error) {
        await records.release(end.id)
        throw error
      }
    },

    /** Finishes a decided end, for the relay of events. */
    async finish (id: string): Promise<void> {
      const end = await records.get(id)
      if (end !== null && end.done !== true) await carryOut(end)
    }
  }
}

export type UpstreamLogouts = ReturnType<typeof createUpstreamLogouts>
