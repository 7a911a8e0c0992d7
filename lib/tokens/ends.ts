import { createBrowsers } from '../browsers/browsers.ts'
import type { Ends } from '../events/gather.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Revocations } from '../events/revocations.ts'
import { scan } from '../store/scan.ts'
import type { Logouts } from '../logout/logouts.ts'
import type { GrantRecord, TokenRecord } from '../records/token.ts'
import type { Filter, Store } from '../store/port.ts'
import { CLIENT_CREDENTIALS, PERSONAL, SERVICE } from './validity.ts'

/** The collections whose records belong to a token session. */
export const OWNED_BY_GRANT = ['refresh_tokens', 'access_tokens', 'authorization_codes', 'device_codes'] as const

/** The events of the ends of tokens with names. */
const REMOVED: Readonly<Record<string, 'token.service_removed' | 'token.personal_removed'>> = {
  [SERVICE]: 'token.service_removed', [PERSONAL]: 'token.personal_removed'
}

interface EndParts {
  store: Store
  recorder: Pick<Recorder, 'end'>
  /** Records revoked tokens of clients that act for themselves. Absent: like those of users. */
  revocations?: Pick<Revocations, 'record'> | undefined
  /** Queues logout tokens for clients before the records that name these clients are deleted. Absent: clients are not notified. */
  logouts?: Pick<Logouts, 'enqueueForSession'> | undefined
  /** Deletes records of revoked tokens, without waiting for that. */
  deleteRevoked: (names: readonly string[], filter: Filter) => void
}

/**
 * The ends of sign-ins, token sessions and tokens. One durable write decides an end, with its event (Recorder.end). Everything is
 * deleted after it: by this call, or if it is interrupted, by the relay of events, which calls `ends`.
 */
export function createEnds ({ store, recorder, revocations, logouts, deleteRevoked }: EndParts) {
  const browsers = createBrowsers(store)
  const grants = store.collection<GrantRecord>('grants')
  const accessTokens = store.collection<TokenRecord>('access_tokens')

  async function deleteGrant (grant_id: string): Promise<void> {
    await grants.delete(grant_id)
    deleteRevoked(OWNED_BY_GRANT, { equal: { grant_id } })
  }

  /** Ends a token session: without the grant, every token and code under it is revoked. */
  async function endGrant (grant_id: string): Promise<void> {
    const grant = await grants.get(grant_id)
    if (grant !== null) {
      const { user_id, client_id, created_at } = grant
      await recorder.end('grants', grant_id, created_at, { type: 'session.ended', id: grant_id, user_id, client_id })
    }
    await deleteGrant(grant_id)
  }

  /** Ends the token sessions that are bound to a sign-in session, of one client or of all. The caller has notified the clients. */
  async function endBoundGrants (session_uid: string, client_id?: string): Promise<void> {
    for await (const batch of scan(grants, { equal: { session_uid, ...(client_id !== undefined && { client_id }) } }, { urgent: true })) {
      for (const grant of batch) if (grant.bound === true) await endGrant(grant.id)
    }
  }

  /** The sessions go before the grants: lib/oidc/codes.ts relies on that. They name the clients, so these are notified first. */
  async function deleteSignIn (uid: string): Promise<void> {
    await logouts?.enqueueForSession(uid)
    await browsers.delete(uid)
    await endBoundGrants(uid)
  }

  /** What the relay calls for each decided end. The caller has usually deleted everything by then. */
  const ends: Ends = {
    sign_in_sessions: deleteSignIn,
    async grants (id) {
      if (await grants.get(id) !== null) await deleteGrant(id)
    },
    async access_tokens (id) {
      if (await accessTokens.get(id) !== null) await accessTokens.delete(id)
    }
  }

  return {
    ends,
    endGrant,
    endBoundGrants,

    /** Ends a sign-in session and the token sessions bound to it. It may be called again after an interruption. */
    async endSignIn (uid: string): Promise<void> {
      const found = await browsers.findSignIn(uid)
      if (found !== undefined) {
        const { user_id, since } = found
        await recorder.end('sign_in_sessions', uid, since, { type: 'browser.signed_out', id: uid, user_id })
      }
      await deleteSignIn(uid)
    },

    /** Whether a user is signed in to a browser, or a token session is left that is bound to their sign-in there. */
    async isSignedIn (user_id: string, uid: string): Promise<boolean> {
      if (await browsers.isSignedIn(user_id, uid)) return true
      for await (const batch of scan(grants, { equal: { session_uid: uid } }, { urgent: true })) {
        if (batch.some((grant) => grant.user_id === user_id && grant.bound === true)) return true
      }
      return false
    },

    /** Ends an access token that belongs to no session. */
    async endToken (id: string): Promise<void> {
      const record = await accessTokens.get(id)
      if (record === null) return
      if (record.kind === CLIENT_CREDENTIALS && revocations !== undefined) {
        // Most of them are only counted, and in memory, so there is nothing to decide with.
        if (await accessTokens.delete(id)) await revocations.record(record)
        return
      }
      const { user_id, client_id, created_at } = record
      const type = REMOVED[record.kind ?? ''] ?? 'token.revoked'
      await recorder.end('access_tokens', id, created_at, { type, id, user_id, client_id })
      await accessTokens.delete(id)
    }
  }
}
