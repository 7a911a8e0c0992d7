import type { OutboundFetch } from '../outbound/fetcher.ts'
import { RefusedError } from '../work/failure.ts'
import type { Outages } from '../work/outage.ts'
import type { createReader } from './find-ended.ts'
import { type LogoutRecord, nameSid } from './record.ts'

/** The user that a logout token is about, and the client that receives it. */
interface LogoutClaims {
  client_id: string
  user_id: string
  /** Absent: all sessions of the user. */
  sid?: string | undefined
}

/** Signs a logout token with the current keys. Resolves to null when the client no longer receives logout tokens. */
export type SignLogout = (claims: LogoutClaims) => Promise<{ uri: string, token: string } | null>

/** Status codes of a receiver that may accept a later attempt. */
const PASSING = [408, 425, 429]

/**
 * Back-Channel Logout 1.0, 2.5: an OP retries only after failures that may be temporary, such as a network outage. With 400 the
 * receiver says that it will never accept the token (2.8).
 */
export function isFinal (error: unknown): boolean {
  if (!(error instanceof RefusedError)) return false
  const { responseCode = 500 } = error
  return responseCode < 500 && !PASSING.includes(responseCode)
}

/**
 * Makes one attempt to notify a client. Each attempt has a new token with its own `jti`: a token is valid for two minutes, and a
 * receiver that failed after it had stored the `jti` would reject the same token as a replay.
 */
export function createAttempt (
  { reader, sign, fetch, outages }: {
    reader: Pick<ReturnType<typeof createReader>, 'findCurrent'>,
    sign: SignLogout,
    fetch: OutboundFetch,
    outages?: Pick<Outages, 'of'> | undefined
  }
) {
  /**
   * The `sid` of each token to send. One token without a `sid` ends all sessions of the user (2.4). It would also end a session that
   * goes on because it was kept or the user has signed in again. If there is such a session, each ended session gets its own token.
   */
  async function listSids ({ user_id, client_id, uids, more, epoch }: LogoutRecord): Promise<(string | undefined)[]> {
    const toSids = (ended: string[]) => ended.map((uid) => nameSid(uid, client_id))
    if (epoch === undefined) return toSids(uids)
    if (more === true) return [undefined]
    const current = await reader.findCurrent(user_id, client_id, epoch)
    return current.size === 0 ? [undefined] : toSids(uids.filter((uid) => !current.has(uid)))
  }

  return async function attempt (record: LogoutRecord, signal: AbortSignal): Promise<void> {
    const { client_id, user_id } = record
    const outage = outages?.of('logout', client_id)
    for (const sid of await listSids(record)) {
      const signed = await sign({ client_id, user_id, sid })
      if (signed === null) return
      try {
        const answer = await fetch({
          url: signed.uri,
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: new URLSearchParams({ logout_token: signed.token }).toString(),
          signal
        })
        // 2.8: some frameworks turn an empty 200 into a 204.
        if (answer.status !== 200 && answer.status !== 204) throw new RefusedError(answer)
        outage?.succeed()
      } catch (error) {
        if (!signal.aborted) outage?.fail(error)
        throw error
      }
    }
  }
}
