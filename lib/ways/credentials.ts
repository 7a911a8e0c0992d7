import { type Clock, toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import { generateId } from '../ids.ts'
import type { UserRecord } from '../records/user.ts'
import { DuplicateKeyError, type Store } from '../store/port.ts'
import { scan } from '../store/scan.ts'
import { type CredentialRecord, type Way, findWay } from '../way.ts'

/** Milliseconds for which material that nobody names is kept. It is named long before, see NAMED_WITHIN. */
const UNNAMED_FOR = 60 * 60_000

/** Milliseconds from the insert of the material until which it may be named, so that it is not removed while it is being named. */
const NAMED_WITHIN = 30 * 60_000

/** Unnamed material of one user. */
const MOST_UNNAMED = 20

/** Milliseconds between two writes of the time of the last use. */
const USE_INTERVAL = 60 * 60_000

/** A way to be added, with its material. */
export type NewWay = Omit<Way, 'at'> & Pick<CredentialRecord, 'material'> & {
  name?: string
  /** Seals what only this record may hold, under its id. */
  seal?: (id: string) => string
}

/** What a use may change. */
export type MaterialChange = Partial<Pick<CredentialRecord, 'material' | 'name' | 'last_used_at'>>

/** The ways of a user: those of their record. */
export type WayHolder = Pick<UserRecord, 'id' | 'ways'>

function beganTooMany (): IdentityError {
  return new IdentityError('ErrLimit', 'way: too many enrolments were begun; try again in an hour', { headers: { 'retry-after': '3600' } })
}

/** The material of ways. Nothing here decides whether a way counts: the user's record does. */
export function createCredentials ({ store, now }: { store: Store, now: Clock }) {
  const records = store.collection<CredentialRecord>('credentials')

  async function * listOf (user_id: string): AsyncGenerator<CredentialRecord> {
    for await (const batch of scan(records, { equal: { user_id } }, { urgent: true })) yield * batch
  }

  const isUnnamed = (holder: WayHolder, { id }: CredentialRecord) => findWay(holder, id) === undefined

  /** @throws ErrLimit after many that were never named */
  async function checkUnnamed (holder: WayHolder, added: number): Promise<void> {
    const since = toTimestamp(now() - UNNAMED_FOR)
    let unnamed = added
    for await (const record of listOf(holder.id)) if (isUnnamed(holder, record) && record.created_at > since) unnamed++
    if (unnamed > MOST_UNNAMED) throw beganTooMany()
  }

  return {
    checkUnnamed,

    /**
     * Stores the material of new ways, which count once they are named.
     * @throws ErrLimit after many that were never named
     */
    async insert (holder: WayHolder, added: readonly NewWay[]): Promise<CredentialRecord[]> {
      const { id: user_id } = holder
      const created_at = toTimestamp(now())
      await checkUnnamed(holder, added.length)
      const made = added.map(({ material, name, seal, ...way }): CredentialRecord => {
        const id = generateId(now())
        return { id, user_id, way, material, ...(seal && { sealed: seal(id) }), ...(name !== undefined && { name }), created_at, revision: 0 }
      })
      await records.insertMany(made)
      return made
    },

    /** Material that may be named now: that of this user, which is not too old. Null for any other. */
    async findNew (user_id: string, id: string): Promise<CredentialRecord | null> {
      const record = await records.get(id)
      return record?.user_id === user_id && record.created_at > toTimestamp(now() - NAMED_WITHIN) ? record : null
    },

    /** The material of a way that the user's record names. Null when it is missing, which counts as no way. */
    async find (user_id: string, id: string, { kind }: Pick<Way, 'kind'>): Promise<CredentialRecord | null> {
      const record = await records.get(id)
      return record?.user_id === user_id && record.way.kind === kind ? record : null
    },

    /** Changes the material if it is still as it was read. Null when another use came first. */
    async update ({ id, user_id, revision }: CredentialRecord, set: MaterialChange): Promise<CredentialRecord | null> {
      return await records.update(id, { set, increment: { revision: 1 } }, { equal: { user_id, revision } })
    },

    /** Keeps the time of a use, where something counts from it. It changes nothing that another write could depend on. */
    async stamp ({ id, user_id }: CredentialRecord): Promise<void> {
      await records.update(id, { set: { last_used_at: toTimestamp(now()) } }, { equal: { user_id } })
    },

    /** Keeps the time of a use, at most once an hour. Another write meanwhile makes it unnecessary. */
    async touch ({ id, user_id, revision, last_used_at = '' }: CredentialRecord): Promise<void> {
      if (last_used_at > toTimestamp(now() - USE_INTERVAL)) return
      await records.update(id, { set: { last_used_at: toTimestamp(now()) }, increment: { revision: 1 } }, { equal: { user_id, revision } })
    },

    async remove (ids: readonly string[]): Promise<void> {
      await Promise.all(ids.map((id) => records.delete(id)))
    },

    /** Removes old material that the user's record does not name. */
    async sweep (holder: WayHolder): Promise<void> {
      const until = toTimestamp(now() - UNNAMED_FOR)
      const old: string[] = []
      for await (const record of listOf(holder.id)) if (isUnnamed(holder, record) && record.created_at <= until) old.push(record.id)
      for (const id of old) await records.delete(id)
    },

    /** Removes all material of a user who was deleted. */
    async removeOf (user_id: string): Promise<void> {
      await records.deleteMany({ equal: { user_id } })
    }
  }
}

export type Credentials = ReturnType<typeof createCredentials>

/** Whether an identity or a passkey is a way of another user. */
export const isInUse = (error: unknown): boolean => error instanceof DuplicateKeyError && error.field === 'way_keys'
