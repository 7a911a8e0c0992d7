import type { Session } from '../../schemas/sessions.ts'
import { createBrowsers } from '../browsers/browsers.ts'
import { AMR, type Acr, type Proof, reaches, toStrength } from '../proofs.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import { scan } from '../store/scan.ts'
import type { ClientRecord } from '../records/client.ts'
import type { GrantRecord, Revocable } from '../records/token.ts'
import type { UserRecord } from '../records/user.ts'
import { readRegistry } from '../resources/registry.ts'
import type { MaybePromise, Store } from '../store/port.ts'
import type { Caller } from '../tokens/caller.ts'
import type { Tokens } from '../tokens/tokens.ts'
import type { UserChanges } from '../user-changes/user-changes.ts'
import { checkValidity } from '../tokens/validity.ts'

/** The methods of a second kind that a person proves here. */
const OWN_FACTORS = [AMR.passkey, AMR.totp, AMR.recovery]

/** A collection of records that have the epoch of their user. */
interface EpochWriter {
  update (id: string, change: { set: { user_epoch: number } }): Promise<unknown>
}

/**
 * Lists and ends the token sessions of a user.
 * @param parts.listStanding the proofs that count, as they count now. Absent: all of them
 */
export function createTokenSessions ({ store, now, tokens, changes, listStanding = (_user, proofs) => proofs }: {
  store: Store, now: Clock, tokens: Tokens, changes: Pick<UserChanges, 'changeUser'>, listStanding?: (user: UserRecord, proofs: readonly Proof[]) => MaybePromise<readonly Proof[]>
}) {
  const users = store.collection<UserRecord>('users')
  const clients = store.collection<ClientRecord>('clients')
  const grants = store.collection<GrantRecord>('grants')
  const browsers = createBrowsers(store)
  const accessTokens = store.collection<Revocable>('access_tokens')
  const refreshTokens = store.collection<Revocable>('refresh_tokens')

  async function moveToEpoch (collection: EpochWriter, record: Revocable | null, user_epoch: number): Promise<void> {
    // Only a record of the previous epoch: a record that was revoked earlier stays revoked.
    if (record?.user_epoch === user_epoch - 1) await collection.update(record.id, { set: { user_epoch } })
  }

  /** Moves the records of the caller's own session to the user's new epoch. */
  async function carryOver ({ id, grant_id }: Caller['token'], user_epoch: number): Promise<void> {
    await moveToEpoch(accessTokens, await accessTokens.get(id), user_epoch)
    if (grant_id === undefined) return
    const grant = await grants.get(grant_id)
    await moveToEpoch(grants, grant, user_epoch)
    for await (const batch of scan(refreshTokens, { equal: { grant_id } }, { urgent: true })) {
      for (const record of batch) await moveToEpoch(refreshTokens, record, user_epoch)
    }
    if (grant?.session_uid !== undefined) await browsers.keep(grant.session_uid, user_epoch)
  }

  /** Whether the second kind of a sign-in is the word of a provider that counts no more. */
  async function isLent (amr: readonly string[], proof: Proof | undefined, user: UserRecord | null): Promise<boolean> {
    if (proof?.both !== true || amr.some((method) => OWN_FACTORS.includes(method))) return false
    return user === null || !(await listStanding(user, [proof])).some(({ both }) => both === true)
  }

  return {
    /**
     * The user's valid token sessions, in batches.
     * @param current the grant of the caller's own session, which is marked as current
     */
    async * list (user_id: string, current?: string): AsyncIterable<Session[]> {
      const user = await users.get(user_id)
      const time = toTimestamp(now())
      const registry = await readRegistry(store)
      for await (const batch of scan(grants, { equal: { user_id } }, { urgent: true })) {
        const ids = [...new Set(batch.map(({ client_id }) => client_id))]
        const found = new Map(await Promise.all(ids.map(async (id) => [id, await clients.get(id)] as const)))
        const sessions = batch.flatMap((grant): Session[] => {
          const linked = { user_id: user, client_id: found.get(grant.client_id) ?? null, registry_id: registry }
          const client = checkValidity({ document: grant, linked }, time)?.client
          if (client === undefined || client === null) return []
          return [{
            session_id: grant.id,
            client: { client_id: client.id, name: client.name },
            created_at: grant.created_at,
            last_used_at: grant.last_used_at,
            current: grant.id === current
          }]
        })
        if (sessions.length > 0) yield sessions
      }
    },

    /**
     * Ends all of a user's token and sign-in sessions with one write, as a password change does.
     * @param keeping the caller's own token or the uid of their browser session. That session continues
     * @param check throws unless the sessions of the user may be ended
     * @throws ErrNotFound
     */
    async end (user_id: string, keeping?: Caller['token'] | string, check?: (record: UserRecord) => void): Promise<void> {
      const notFound = () => new IdentityError('ErrNotFound', 'user: no such user')
      await changes.changeUser(user_id, (record) => {
        check?.(record)
        return { increment: { epoch: 1 }, happened: [{ type: 'user.sessions_ended', id: user_id }] }
      }, {
        notFound,
        // The caller's own token is invalid until carryOver is done. If carryOver is interrupted, the caller must sign in again.
        async keep ({ epoch }) {
          if (typeof keeping === 'string') await browsers.keep(keeping, epoch)
          else if (keeping !== undefined) await carryOver(keeping, epoch)
        }
      })
    },

    /**
     * Ends the sign-in and token sessions in which a user has proved less than this, by what counts now. Tokens that an operator minted come
     * from no sign-in, and stay.
     * @returns the number of ended sessions
     */
    async endBelow (user_id: string, acr: Acr): Promise<number> {
      const user = await users.get(user_id)
      const uids = new Set<string>()
      for await (const batch of browsers.readOf(user_id)) {
        // A session of an earlier release has no proofs: all that there was is a password.
        for (const { uid, proofs = [] } of batch) {
          const standing = user === null ? [] : await listStanding(user, proofs)
          if (standing.length === 0 || !reaches(toStrength(standing), acr)) uids.add(uid)
        }
      }
      for (const uid of uids) await tokens.endSignIn(uid)
      let ended = uids.size
      for await (const batch of scan(grants, { equal: { user_id } }, { urgent: true })) {
        for (const { id, auth, session_uid, upstream_proof } of batch) {
          if (auth === undefined ? session_uid === undefined : reaches({ acr: await isLent(auth.amr, upstream_proof, user) ? '1' : auth.acr }, acr)) continue
          await tokens.endGrant(id)
          ended++
        }
      }
      return ended
    }
  }
}

export type TokenSessions = ReturnType<typeof createTokenSessions>
