import type { Base } from '../base.ts'
import { Background } from '../work/background.ts'
import { toEpoch, toTimestamp } from '../clock.ts'
import { hashToken } from '../crypto/random-token.ts'
import { IdentityError } from '../errors.ts'
import type { Revocations } from '../events/revocations.ts'
import { scan } from '../store/scan.ts'
import type { Logouts } from '../logout/logouts.ts'
import type { GrantRecord, Revocable, TokenRecord } from '../records/token.ts'
import type { UserRecord } from '../records/user.ts'
import type { Filter, Linked, MaybePromise } from '../store/port.ts'
import { type Caller, toCaller } from './caller.ts'
import { DerivedCache } from './derived.ts'
import { OWNED_BY_GRANT, createEnds } from './ends.ts'
import { createIssue } from './issue.ts'
import { type StrengthClaims, showStrength } from './strength.ts'
import type { CredentialUses } from './uses.ts'
import { LINKS, PERSONAL, type PersonalRule, type RevocableName, type Valid, checkValidity, isOfEpoch } from './validity.ts'

export { type Caller } from './caller.ts'
export { ACCESS_TTL, type MintOptions, type MintedTokens, type NewToken, type Subject } from './issue.ts'

const OWNED_BY_CLIENT = [...OWNED_BY_GRANT, 'grants'] as const
/** The collections whose records belong to a user. */
const OWNED_BY_USER = [...OWNED_BY_CLIENT, 'sign_in_sessions'] as const

/** The number of first uses of refresh tokens that a session stores. No real client makes more within the grace period. */
const REMEMBERED_USES = 10

/** The error of RFC 6750, 3.1. */
function refuseToken (text: string): IdentityError {
  return new IdentityError('ErrUnknown', text, {
    headers: { 'www-authenticate': `Bearer error="invalid_token", error_description="${text}"` }
  })
}

/** The error for a token that is not valid. The message is the same for every cause, so that a probe learns nothing. */
export function invalidToken (): IdentityError {
  return refuseToken('the access token is unknown, expired or revoked')
}

/** The error for a valid token with another audience than this resource, or with none. Its holder may know that it is valid. */
export function wrongAudience (): IdentityError {
  return refuseToken('the access token was not requested for this resource')
}

/** What decides whether a personal access token counts, beside `checkValidity`. */
export interface PersonalTokenRules {
  show: PersonalRule
  /** Whether the provider by which alone the person signs in has said nothing of them for too long. Null where no provider has this word. */
  isPast: (user: UserRecord) => Promise<boolean> | null
}

interface TokenParts extends Pick<Base, 'store' | 'now' | 'roles' | 'report'> {
  recorder: Pick<Base['recorder'], 'end'>
  /** Records revoked tokens of clients that act for themselves. Absent: like those of users. */
  revocations?: Pick<Revocations, 'record'> | undefined
  /** Lifetime of minted refresh tokens in seconds. Absent: none are minted, because no authorization server redeems them. */
  refreshTtl?: number | undefined
  /** Queues logout tokens for clients before the records that name these clients are deleted. Absent: clients are not notified. */
  logouts?: Pick<Logouts, 'enqueueForSession' | 'enqueueForUser'> | undefined
  /** Notes the last uses of tokens with names. Absent: they are not noted. */
  uses?: Pick<CredentialUses, 'note'> | undefined
  /** Absent: personal access tokens are off. */
  personal?: PersonalTokenRules | undefined
}

/**
 * The lifecycle of token sessions: issue, look-up, rotation and end, for minted tokens and for those of the authorization
 * server.
 *
 * Revocation is one write: it increments the epoch of the user or client, or deletes the user, client, grant or token. Every
 * look-up reads all of them, so tokens are revoked from that write on. The end of a session is decided before it (ends.ts). A token
 * carries the epochs that were read when it was requested, so a token issued during a revocation is never valid. The records of revoked
 * tokens are deleted after that write, in the background; this cleanup may be interrupted anywhere.
 *
 * A grant is a token session: the tokens and codes of one authorization. It never expires before a token under it.
 */
export function createTokens ({ store, now, roles, recorder, report, revocations, refreshTtl, logouts, uses, personal }: TokenParts) {
  const accessTokens = store.collection<TokenRecord>('access_tokens')
  const grants = store.collection<GrantRecord>('grants')
  const onError = report('removals')
  const background = new Background({ onError })
  // Separate from removals, which may take long.
  const telling = new Background({ onError })

  async function find<T extends Revocable> (name: RevocableName, id: string): Promise<Valid<T> | null> {
    const found = await store.collection<T>(name).getLinked(id, LINKS[name])
    return checkValidity(found, toTimestamp(now()), personal?.show)
  }

  /**
   * Creates a look-up of access tokens by their hash that makes something of each valid one, and keeps it while nothing that decides about
   * the token changes. It returns without a promise if the store can answer synchronously.
   * @param make returns null for a token that counts as invalid
   */
  function createLookUp<T extends object> (make: (valid: Valid<TokenRecord>) => T | null): (id: string) => MaybePromise<T | null> {
    const cache = new DerivedCache<T>()

    /** @param generation the store's generation at the look-up */
    function derive (found: Linked<TokenRecord> | null, generation?: number): MaybePromise<T | null> {
      if (found === null) return null
      const time = now()
      const { stamp } = found
      const cached = stamp === undefined ? undefined : cache.confirm(found.document.id, stamp, generation, time)
      if (cached !== undefined) return cached
      const valid = checkValidity(found, toTimestamp(time), personal?.show)
      const value = valid === null ? null : make(valid)
      const isPast = valid?.record.kind === PERSONAL && valid.user !== null ? personal?.isPast(valid.user) ?? null : null
      // What the provider has said is in no record that the stamp covers, so it is asked at each use.
      if (isPast !== null) return isPast.then((past) => past ? null : value)
      if (valid !== null && value !== null && stamp !== undefined) cache.set(valid, stamp, generation, value)
      return value
    }

    return (id) => {
      const generation = accessTokens.getGeneration?.()
      const cached = cache.get(id, generation, now())
      if (cached !== undefined) return cached
      const found = accessTokens.getLinked(id, LINKS.access_tokens)
      return found instanceof Promise ? found.then((answer) => derive(answer)) : derive(found, generation)
    }
  }

  // RFC 9449, 7.2: a DPoP-bound token is not a bearer token, and this API accepts bearer tokens only.
  const findCaller = createLookUp((valid) => valid.record.jkt === undefined ? toCaller(valid, roles.admin) : null)

  function requireValid (caller: Caller | null): Caller {
    if (caller === null) throw invalidToken()
    return caller
  }

  /**
   * Deletes the records of revoked tokens in the background. A failure is reported to the operator, not to the caller, whose
   * change took effect.
   * @param isRevoked selects the records to delete. Absent: all records that match the filter
   */
  function deleteRevoked (names: readonly string[], filter: Filter, isRevoked?: (record: Revocable) => boolean): void {
    background.run(async () => {
      for (const name of names) await (isRevoked === undefined ? store.collection(name).deleteMany(filter) : deleteSome(name, filter, isRevoked)).catch(onError)
    })
  }

  async function deleteSome (name: string, filter: Filter, isRevoked: (record: Revocable) => boolean): Promise<void> {
    const collection = store.collection<Revocable>(name)
    for await (const batch of scan(collection, filter)) {
      await Promise.all(batch.filter(isRevoked).map(({ id }) => collection.delete(id)))
    }
  }

  const { ends, endGrant, endBoundGrants, endSignIn, endToken, isSignedIn } = createEnds({ store, recorder, revocations, logouts, deleteRevoked })

  /**
   * Whether a refresh token, or another one of its generation, was first used more than `grace` seconds ago. Two uses within the
   * grace period produce two tokens of one generation. The first use of one of them counts for both. Otherwise a thief who is quick
   * enough could go on refreshing in parallel with the client.
   */
  function isSpent ({ record, grant }: Pick<Valid<TokenRecord>, 'record' | 'grant'>, grace: number): boolean {
    if (grant === null || record.generation === undefined) return true
    if (record.generation === grant.generation) return false
    const used_at = grant.refreshed_at[grant.generation - record.generation - 1]
    return used_at === undefined || used_at <= toTimestamp(now() - grace * 1000)
  }

  return {
    /**
     * Finds the user and the client of an access token. Returns without a promise if the store can answer synchronously.
     * @param _again whether the same request authenticated it before. Metrics count one check a request (lib/metrics)
     * @throws ErrUnknown when the token, its grant, user or client is unknown, expired or revoked
     */
    authenticate (token: string, _again = false): MaybePromise<Caller> {
      const caller = findCaller(hashToken(token))
      return caller instanceof Promise ? caller.then(requireValid) : requireValid(caller)
    },

    createLookUp,

    /** Notes a use of a token with a name, with the address of its request. Without one, an API has asked about it. */
    noteUse: (holder: string, id: string, address?: string): void => uses?.note(holder, id, address),

    /** The claims about the sign-in that a caller's token comes from. */
    describeSignIn: ({ auth }: Pick<Caller, 'auth'>): StrengthClaims => showStrength(auth, (timestamp) => toEpoch(timestamp, now)),

    /** Finds a valid record, together with the records that its validity depends on; null if there is none. */
    find,

    ...createIssue({ store, now, refreshTtl, find }),

    /**
     * Spends a one-time code with one conditional write. A second use ends the session of the first use (RFC 6749, 4.1.2).
     * @returns false when the code was already spent
     */
    async spend (name: 'authorization_codes' | 'device_codes', id: string): Promise<boolean> {
      const codes = store.collection<TokenRecord>(name)
      if (await codes.update(id, { set: { consumed: true } }, { equal: { consumed: false } }) !== null) return true
      const grant_id = (await codes.get(id))?.grant_id
      if (grant_id !== undefined) await endGrant(grant_id)
      return false
    },

    /**
     * Spends a refresh token. A second use ends its session (RFC 9700, 4.14.2), except within `grace` seconds of the first, for a
     * client that lost the response or refreshes from two tabs at the same time.
     * @param found the look-up of the refresh token
     * @returns the session as it is then; null when it was ended
     */
    async rotate ({ record, grant }: Pick<Valid<TokenRecord>, 'record' | 'grant'>, grace: number): Promise<GrantRecord | null> {
      const { generation } = record
      if (grant === null || generation === undefined) return null
      const set = { generation: generation + 1, refreshed_at: [toTimestamp(now()), ...grant.refreshed_at].slice(0, REMEMBERED_USES) }
      const rotated = await grants.update(grant.id, { set }, { equal: { generation } })
      if (rotated !== null) return rotated
      const current = await grants.get(grant.id)
      if (!isSpent({ record, grant: current }, grace)) return current
      await endGrant(grant.id)
      return null
    },

    isSpent,
    endGrant,
    endBoundGrants,

    /**
     * Queues logout tokens for the clients of a sign-in session that is about to end. `endSignIn` does this itself.
     * @param client_id notifies only this client, at which the session ends; absent: all clients
     */
    async tellOfSignOut (uid: string, client_id?: string): Promise<void> {
      await logouts?.enqueueForSession(uid, client_id)
    },

    endSignIn,
    isSignedIn,

    /** Finishes decided ends, for the relay of events. */
    ends,

    /** Ends the caller's token session: the access token and, if it has a grant, every token under that grant (`POST /auth/logout`). */
    async revoke ({ id, grant_id }: Pick<Caller['token'], 'id' | 'grant_id'>): Promise<void> {
      await (grant_id === undefined ? endToken(id) : endGrant(grant_id))
    },

    /**
     * Cleans up in the background after a user was deleted: queues logout tokens for the clients where the user had signed in, and
     * then deletes the user's sign-in sessions, codes, tokens and grants.
     * @param epoch for a user whose epoch was incremented to this value. Only records of earlier epochs are then deleted, because
     *   the user may sign in again meanwhile
     */
    deleteOfUser (user_id: string, epoch?: number): void {
      const remove = () => deleteRevoked(OWNED_BY_USER, { equal: { user_id } }, epoch === undefined ? undefined : (record) => !isOfEpoch(record, { epoch }))
      if (logouts === undefined) return remove()
      telling.run(async () => {
        // After a failure the records stay, because they name the clients that must still be notified.
        await logouts.enqueueForUser(user_id, epoch, { atOnce: true })
        remove()
      })
    },

    /**
     * Deletes the codes, tokens and grants of a client that was deleted, in the background.
     * @param epoch for a client whose epoch was incremented to this
     */
    deleteOfClient (client_id: string, epoch?: number): void {
      deleteRevoked(OWNED_BY_CLIENT, { equal: { client_id } }, epoch === undefined ? undefined : ({ client_epoch = 0 }) => client_epoch < epoch)
    },

    /** Resolves when all logout tokens are queued and the records of all revoked tokens are deleted. */
    async settle (): Promise<void> {
      await telling.settle()
      await background.settle()
    },

    /** Waits for the tasks in the background, up to their time limit. */
    async close (): Promise<void> {
      await telling.close()
      await background.close()
    }
  }
}

export type Tokens = ReturnType<typeof createTokens>
