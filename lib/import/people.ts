import type { UserRecord } from '../records/user.ts'
import type { MaybePromise, Store } from '../store/port.ts'
import { findByName } from '../users/addresses.ts'
import type { WayKind } from '../way.ts'
import type { CheckedLine } from './check-line.ts'
import type { EarlierLines } from './earlier-lines.ts'
import type { FormerImports } from '../users/former-imports.ts'
import { toExternalKey } from './keys.ts'
import { Refused, naming } from './refused.ts'
import type { Remembered } from './remembered.ts'

/** Tells whether a line is about somebody who was deleted here. */
export interface Memory {
  remembered: Pick<Remembered, 'has'>
  formerImports: Pick<FormerImports, 'has'>
}

const toSharedWay = (kind: WayKind): Refused =>
  kind === 'totp' ? new Refused('totp', 'the seed is that of another user') : new Refused('identities', 'is an identity of another user')

/**
 * Reads whom a line is about, and who stands in its way.
 * @param earlier the earlier lines of a dry run
 */
export function createPeople (store: Store, earlier?: Pick<EarlierLines, 'find'>) {
  const users = store.collection<UserRecord>('users')
  /** An earlier line has changed whom it has met. */
  const or = async (read: () => MaybePromise<UserRecord | null>, ...name: Parameters<EarlierLines['find']>): Promise<UserRecord | null> =>
    earlier?.find(...name) ?? await read()
  const getById = async (id: string) => await or(() => users.get(id), 'id', id)
  const getByAccount = async (account: string) => await or(() => users.getBy('account', account), 'account', account)
  const getByName = async (name: string) => await or(() => findByName(users, name), 'name', name)
  const getByExternal = async (key: string) => await or(() => users.getBy('external_keys', key), 'external', key)
  const getByWay = async (key: string) => await or(() => users.getBy('way_keys', key), 'way', key)

  return {
    getById,

    /**
     * The person whom a line is about: the one with its id, or with its id in the source; without both, the one with its account. Only
     * somebody whom the source has brought in.
     * @throws Refused when it is somebody else
     */
    async find ({ id, external, account }: CheckedLine, source: string): Promise<UserRecord | null> {
      const foreign = Object.hasOwn(external, source) ? external[source] : undefined
      const byId = id === undefined ? null : await getById(id)
      const byExternal = foreign === undefined ? null : await getByExternal(toExternalKey(source, foreign))
      if (byId !== null) {
        if (byId.imported_source !== source) throw new Refused('id', 'is the id of a user whom this source has not brought in')
        if (byExternal !== null && byExternal.id !== id) throw new Refused(`external.${source}`, 'is the id of another user')
        return byId
      }
      if (byExternal !== null) {
        if (id !== undefined) throw new Refused('id', 'is not the id of the user who is here already')
        if (byExternal.imported_source !== source) throw new Refused(`external.${source}`, 'is the id of a user whom this source has not brought in')
        return byExternal
      }
      if (id !== undefined || foreign !== undefined) return null
      const byAccount = await getByAccount(account)
      return byAccount?.imported_source === source ? byAccount : null
    },

    /**
     * Checks what no unique index decides about a new user: who was deleted here, an id that is remembered, and an address of an early release.
     * @param source where the line comes from. Absent: from wherever the person came then
     * @param again whether somebody who was deleted comes back, with their id
     * @throws Refused, ErrBusy while the deletion of the person is not finished
     */
    async checkFree (line: CheckedLine, { remembered, formerImports }: Memory, source?: string, again = false): Promise<void> {
      const { id, account, email } = line
      const field = await formerImports.has(line, source)
      if (field !== undefined && !again) throw new Refused(field, `is that of somebody who was deleted here; ${naming('again')} brings them in`)
      if (id !== undefined && await remembered.has(id, again && field === 'id')) throw new Refused('id', 'was the id of another user, or is that of a client')
      if (email !== undefined && email !== account && await getByName(email) !== null) throw new Refused('email', 'is the address of another user')
    },

    /** Because of which field keys cannot be written to a user: one of them is that of another user. Null without one. */
    async findSharedKey ({ id, external_keys = [], ways = {} }: Pick<UserRecord, 'id' | 'external_keys' | 'ways'>): Promise<Refused | null> {
      const isShared = (holder: UserRecord | null) => holder !== null && holder.id !== id
      for (const key of external_keys) if (isShared(await getByExternal(key))) return new Refused('external', 'is an id of another user')
      for (const { kind, key } of Object.values(ways)) if (key !== undefined && isShared(await getByWay(key))) return toSharedWay(kind)
      return null
    },

    /** The field because of which a new user cannot be written, in the same order on every engine. Null without one. */
    async findClash (user: UserRecord): Promise<Refused | null> {
      const { id, account, addresses = [], external = {}, external_keys = [], ways = {} } = user
      if (await getById(id) !== null) return new Refused('id', 'is the id of another user')
      if (await getByName(account) !== null) return new Refused('account', 'a user with this account or address exists')
      for (const address of addresses) {
        if (address !== account && await getByName(address) !== null) return new Refused('email', 'is the address of another user')
      }
      for (const [index, source] of Object.keys(external).entries()) {
        if (await getByExternal(external_keys[index]!) !== null) return new Refused(`external.${source}`, 'is the id of another user')
      }
      for (const { kind, key } of Object.values(ways)) {
        if (key === undefined || await getByWay(key) === null) continue
        return toSharedWay(kind)
      }
      return null
    }
  }
}

export type People = ReturnType<typeof createPeople>
