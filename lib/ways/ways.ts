import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import type { Recorded } from '../events/types.ts'
import type { Proof, Strength } from '../proofs.ts'
import type { UserRecord } from '../records/user.ts'
import { checkUnrestricted } from '../restricted.ts'
import type { Actor } from '../roles.ts'
import type { MaybePromise } from '../store/port.ts'
import { invalidToken } from '../tokens/tokens.ts'
import type { ConfirmRecord, UserChanges } from '../user-changes/user-changes.ts'
import { type CredentialRecord, PASSWORD, type Way, findWay } from '../way.ts'
import { type MaterialChange, type NewWay, type WayHolder, createCredentials, isInUse } from './credentials.ts'
import { type HeldWay, createExistingWays } from './existing-ways.ts'
import { areRestricted, isDemandedOf, isRestricted } from './restricted.ts'
import { type More, createWayChanges } from './way-changes.ts'
import { WayError } from './way-error.ts'
import { DEFAULT_POLICY, type WayPolicy, hasFactor, hasOther, isFactor, listWaysIn, mayRemove, needsFactor, toWayFields } from './words.ts'

/**
 * Who asks for a change, with the epoch of their session: a change that was begun in a session fails once the session has ended. Null:
 * an administrator asks, for somebody else.
 */
export type WayActor = Pick<Actor, 'user_id'> & {
  confirm?: ConfirmRecord
  epoch: number | null
  /** What they have proved in the session or in the sign-in that asks. Absent: something else stands for it, such as a link. */
  proofs?: readonly Proof[]
}

/** Whether the person has proved that they have it: an authenticator app by its first right code, which leaves its step. */
export const isProved = ({ way: { kind }, material }: Pick<CredentialRecord, 'way' | 'material'>): boolean => kind !== 'totp' || material['step'] !== undefined

/** @throws ErrUnknown when the session that asks has ended */
async function checkActor ({ epoch, confirm }: WayActor, record: UserRecord | null): Promise<UserRecord> {
  if (record === null || (epoch !== null && record.epoch !== epoch)) throw invalidToken()
  await confirm?.(record)
  return record
}

/** Whether nothing was written, for certain. */
const isCertain = (error: unknown): boolean => error instanceof IdentityError && error.code !== 'ErrDb'

/**
 * The ways of users to prove who they are. The user's record names them, and one conditional write of it decides about each change.
 * The material is inserted before it is named, and removed after it was. What is left over when a process dies counts for nothing.
 */
export function createWays ({ store, now, report, changes, policy = DEFAULT_POLICY }: Pick<Base, 'store' | 'now' | 'report'> & {
  changes: Pick<UserChanges, 'changeUser'>
  policy?: WayPolicy
}) {
  const onError = report('users')
  const users = store.collection<UserRecord>('users')
  const credentials = createCredentials({ store, now })
  const existing = createExistingWays({ credentials, policy })
  const { withExisting, withIssuers } = existing

  /** Whether people can add second factors. */
  const canAddFactors = policy.factors !== 'off'

  function checkMayAdd (way: Pick<Way, 'kind'>): void {
    if (!canAddFactors && isFactor(way)) throw new WayError('off')
  }

  const change = createWayChanges({ now, changes, credentials, withIssuers, checkMayAdd, onError })

  /** What has proved only ways for some clients adds no way for all. @throws RestrictedError */
  async function checkMayName ({ proofs = [] }: WayActor, record: UserRecord, add: readonly CredentialRecord[]): Promise<void> {
    const holder = await withExisting(record)
    if (!add.every(({ way }) => isDemandedOf(holder, way, policy))) checkUnrestricted({ isRestricted: areRestricted(proofs, holder, policy) })
  }

  async function read (actor: WayActor): Promise<UserRecord> {
    return await checkActor(actor, await users.get(actor.user_id))
  }

  /**
   * Names material that was prepared, in one write. An authenticator app must have been proved. Recovery codes replace former ones.
   * @param more what is written with it; a function decides on the record that the write replaces
   * @returns the user's record
   * @throws WayError, RestrictedError, ErrUnknown when the session that asks has ended
   */
  async function name (actor: WayActor, ids: readonly string[], more: More | ((record: UserRecord) => MaybePromise<More>) = {}): Promise<UserRecord> {
    return await change(actor.user_id, async (record) => {
      await checkActor(actor, record)
      const written = typeof more === 'function' ? await more(record) : more
      const add = await Promise.all(ids.map(async (id) => {
        const made = await credentials.findNew(record.id, id)
        if (made === null || !isProved(made) || findWay(record, id) !== undefined) throw new WayError('unknown')
        return made
      }))
      await checkMayName(actor, record, add)
      const isAnew = add.some(({ way }) => way.kind === 'recovery')
      const remove = isAnew ? Object.entries(record.ways ?? {}).filter(([, { kind }]) => kind === 'recovery').map(([id]) => id) : []
      return { ...written, add, remove: [...remove, ...written.remove ?? []] }
    }, invalidToken)
  }

  return {
    /** The ways of a user whose material exists, the first one first. */
    async list (user: WayHolder): Promise<HeldWay[]> {
      return (await existing.list(user)).sort((one, other) => one.way.at < other.way.at ? -1 : 1)
    },

    withExisting,

    withIssuers,

    canAddFactors,

    /** Whether a sign-in came only of ways that are for some clients: see checkUnrestricted. */
    isRestricted: (auth: Readonly<Strength> | undefined): boolean => isRestricted(auth, policy),

    /** The same for what was proved in a sign-in. */
    areRestricted: (proofs: readonly Proof[], user: UserRecord): boolean => areRestricted(proofs, user, policy),

    /** Whether a user may remove a way or their password now: whether they keep a way in that reaches what is demanded of them. */
    async mayRemove (user: UserRecord, id: string): Promise<boolean> {
      return mayRemove(await withExisting(user), id, policy)
    },

    /** Whether the operator demands a factor of some people, whether or not they have one. */
    mayDemand: policy.factors !== 'off' && policy.factors !== 'optional',

    /** Whether the operator demands a factor of somebody with these roles. */
    demandsFactor: (user: Pick<UserRecord, 'roles'>): boolean => needsFactor(user, policy),

    /** Whether a user has a way in. */
    async hasWayIn (user: UserRecord): Promise<boolean> {
      return listWaysIn(await withExisting(user), policy).length > 0
    },

    /** Whether a user has a second factor that they can use. */
    async hasFactor (user: UserRecord): Promise<boolean> {
      return hasFactor(await withExisting(user), policy)
    },

    /** The same, by their id. False without such a user. */
    async hasFactorOf (user_id: string): Promise<boolean> {
      const user = await users.get(user_id)
      return user !== null && hasFactor(await withExisting(user), policy)
    },

    /** Whether a user can prove who they are by something else than an identity at another provider. */
    async hasOther (user: UserRecord): Promise<boolean> {
      return hasOther(await withExisting(user), policy)
    },

    /** One way of a user with its material; null when it does not exist. */
    get: existing.get,

    /** The user who has this passkey or this identity, and the way. Null when nobody has. @param key see toWayKey */
    async find (key: string): Promise<{ user: UserRecord, held: HeldWay } | null> {
      const user = await users.getBy('way_keys', key)
      const [id] = Object.entries(user?.ways ?? {}).find(([, way]) => way.key === key) ?? []
      const held = user === null || id === undefined ? null : await existing.get(user, id)
      return user && held && { user, held }
    },

    /** Checks what `prepare` checks, before material is made that takes long. @throws as `prepare` */
    async checkMayPrepare (actor: WayActor, way: Pick<Way, 'kind'>): Promise<void> {
      checkMayAdd(way)
      await credentials.checkUnnamed(await read(actor), 1)
    },

    /**
     * Stores the material of ways that the person has yet to prove or to confirm, such as a seed before its first right code.
     * @returns the ids to name, within half an hour
     * @throws WayError `off`, ErrUnknown, ErrLimit
     */
    async prepare (actor: WayActor, added: readonly NewWay[]): Promise<string[]> {
      added.forEach(checkMayAdd)
      return (await credentials.insert(await read(actor), added)).map(({ id }) => id)
    },

    /** Material that was prepared for this user, and may be named; null for any other. */
    async findPrepared ({ user_id }: Pick<WayActor, 'user_id'>, id: string): Promise<CredentialRecord | null> {
      return await credentials.findNew(user_id, id)
    },

    name,

    /**
     * Stores the material of the first way of a user who is yet to be created.
     * @returns the fields of the record that name it, and a function that removes the material after an error that created no user
     */
    async prepareNew (user_id: string, added: NewWay): Promise<{
      id: string, fields: Pick<UserRecord, 'ways' | 'way_keys' | 'upstreams'>, drop: (error: unknown) => Promise<void>
    }> {
      const [made] = await credentials.insert({ id: user_id }, [added])
      const { id, way } = made!
      const fields = toWayFields({ [id]: { ...way, at: toTimestamp(now()) } }).set as Pick<UserRecord, 'ways' | 'way_keys' | 'upstreams'>
      return { id, fields, drop: async (error) => { if (isCertain(error) || isInUse(error)) await credentials.remove([id]).catch(onError) } }
    },

    /** Adds a way: `prepare` and `name`. @throws as these */
    async add (actor: WayActor, added: NewWay, more: More = {}): Promise<{ id: string, user: UserRecord }> {
      const [made] = await credentials.insert(await read(actor), [added])
      try {
        return { id: made!.id, user: await name(actor, [made!.id], more) }
      } catch (error) {
        // After a failure of the store it may have been named.
        if (isCertain(error)) await credentials.remove([made!.id]).catch(onError)
        throw error
      }
    },

    /**
     * Removes a way, or the password. The recovery codes go with the last factor.
     * @param options.isEnd whether all sessions end. Removing the password always ends them
     * @param options.toRecorded the events and the mails, of the record that the write replaces
     * @returns the user's record, with the epoch for a sign-in that follows
     * @throws WayError `last` unless a way in remains, ErrUnknown when the session that asks has ended
     */
    async remove (
      actor: WayActor, id: string, { isEnd = true, toRecorded }: { isEnd?: boolean, toRecorded?: (record: UserRecord) => MaybePromise<Recorded> } = {}
    ): Promise<UserRecord> {
      return await change(actor.user_id, async (record) => {
        await checkActor(actor, record)
        if (id === PASSWORD ? !record.password : findWay(record, id) === undefined) throw new WayError('unknown')
        if (!mayRemove(await withExisting(record), id, policy)) throw new WayError('last')
        return { remove: [id], isEnd: isEnd || id === PASSWORD, ...await toRecorded?.(record) }
      }, invalidToken)
    },

    change,

    /** Changes the material of a way if it is still as it was read. Null when another use came first: then this one is refused. */
    async update (credential: CredentialRecord, set: MaterialChange): Promise<CredentialRecord | null> {
      return await credentials.update(credential, set)
    },

    touch: credentials.touch,
    stamp: credentials.stamp,

    /** Removes the material of ways that no record names any more. */
    drop: credentials.remove,

    /** Removes the material of a user who was deleted. */
    removeOf: credentials.removeOf
  }
}

export type WayService = ReturnType<typeof createWays>
