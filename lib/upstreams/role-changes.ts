import { setTimeout as sleep } from 'node:timers/promises'
import type { Upstream } from '../../schemas/upstream.ts'
import { type Decision, unlessGone } from '../change-record.ts'
import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import type { Happening } from '../events/types.ts'
import type { UserRecord } from '../records/user.ts'
import type { Store } from '../store/port.ts'
import { scan } from '../store/scan.ts'
import type { StoredUsers } from '../users/stored-users.ts'
import { UpstreamError } from './failure.ts'
import { type AnsweredRoles, ROLE_MAX, changeRoles, isSuperseded, listEnded, listLeft } from './claimed-roles.ts'

/** Milliseconds between two looks for roles that have lasted too long. */
const INTERVAL = 60 * 60_000

/** Nothing is to be written. */
class Unchanged extends Error {
  readonly record: UserRecord

  constructor (record: UserRecord) {
    super()
    this.record = record
  }
}

/** Whether the guard of administrators has refused to take the role from the last one. */
const isLast = (error: unknown): boolean => error instanceof IdentityError && error.code === 'ErrPerm' && error.message.startsWith('roles:')

/** Writes the roles that maps give and take. Every such change passes here, and then the guard of administrators. */
export function createRoleChanges ({ stored: { changeUser, users }, upstreams, roles: { admin }, now }: Pick<Base, 'now'> & {
  stored: Pick<StoredUsers, 'changeUser' | 'users'>, upstreams: readonly Upstream[], roles: Pick<Base['roles'], 'admin'>
}) {
  /**
   * @param decide gets the role of administrators where the last one keeps it. Null: nothing is written
   * @returns the record as it is then
   */
  async function change (user_id: string, decide: (record: UserRecord, keeps?: string) => Decision<UserRecord> | null): Promise<UserRecord> {
    const write = async (keeps?: string) => await changeUser(user_id, (record) => {
      const decision = decide(record, keeps)
      if (decision === null) throw new Unchanged(record)
      return decision
    })
    try {
      return await write().catch(async (error: unknown) => {
        if (!isLast(error)) throw error
        return await write(admin)
      })
    } catch (error) {
      if (!(error instanceof Unchanged)) throw error
      return error.record
    }
  }

  async function end (user_id: string): Promise<void> {
    await change(user_id, (record, keeps) => {
      const ended = listEnded(record, upstreams, now)
      const waits = ended.every(({ upstream: { id } }) => record.claimed_roles?.[id]?.kept === true)
      // An administrator who is the last one still: nothing new is to be said.
      if (ended.length === 0 || (keeps !== undefined && waits)) return null
      let changed = record
      const happened: Happening[] = []
      const all: Decision<UserRecord> = { set: {}, unset: [], happened }
      for (const { upstream, at } of ended) {
        const { set, unset = [], happened: told = [] } = changeRoles(changed, { upstream, names: [], at, keeps })
        changed = { ...changed, ...set }
        happened.push(...told)
        Object.assign(all, { set: { ...all.set, ...set }, unset })
      }
      return all
    })
  }

  return {
    /**
     * Gives and takes the roles of an answer.
     * @param user with the epoch by which the sign-in goes on
     * @param via the identity that has answered
     * @returns the user, with another epoch where these roles have ended their sessions
     * @throws UpstreamError `over` where something else has ended them: the sign-in does not finish after it
     */
    async apply (
      upstream: Upstream, answered: AnsweredRoles, { id, epoch }: Pick<UserRecord, 'id' | 'epoch'>, via: NonNullable<Happening['via']>
    ): Promise<UserRecord> {
      return await change(id, (record, keeps) => {
        if (record.epoch !== epoch) throw new UpstreamError('over')
        if (isSuperseded(record, upstream, answered)) return null
        return changeRoles(record, { upstream, names: answered.names, at: toTimestamp(answered.at), keeps, via })
      })
    },

    /** Takes the roles whose last answer is too long ago. @returns how many people were looked at */
    async sweep (signal?: AbortSignal): Promise<number> {
      const shortest = Math.min(...upstreams.filter(({ roles }) => roles !== undefined).map(({ roleMax = ROLE_MAX }) => roleMax))
      if (shortest === Infinity) return 0
      let count = 0
      for await (const batch of scan(users, { before: { roles_at: toTimestamp(now() - shortest * 1000) } }, { key: 'roles_at' })) {
        for (const record of batch) {
          if (signal?.aborted === true) return count
          if (listEnded(record, upstreams, now).length === 0) continue
          count++
          await unlessGone(end(record.id))
        }
      }
      return count
    }
  }
}

export type RoleChanges = ReturnType<typeof createRoleChanges>

const waitUntil = async (time: number, signal: AbortSignal) => await sleep(time, undefined, { signal, ref: false }).catch(() => {})

/** Takes such roles once an hour, until the signal. Without a map nothing is looked at. */
export async function sweepRoles ({ sweep, signal, onError, wait = waitUntil }: Pick<RoleChanges, 'sweep'> & {
  signal: AbortSignal, onError: (error: unknown) => void, wait?: typeof waitUntil
}): Promise<void> {
  while (!signal.aborted) {
    try {
      await sweep(signal)
    } catch (error) {
      if (!signal.aborted) onError(error)
    }
    await wait(INTERVAL, signal)
  }
}

/** Counts the holders of roles that have left a map, for the operator: by upstream and role. Only people with such roles are read. */
export async function countLeft (store: Store, upstreams: readonly Upstream[]): Promise<{ upstream: string, role: string, count: number }[]> {
  const counts = new Map<string, { upstream: string, role: string, count: number }>()
  for await (const batch of scan(store.collection<UserRecord>('users'), { since: { roles_at: '' } }, { key: 'roles_at' })) {
    for (const record of batch) {
      for (const { upstream, role } of listLeft(record, upstreams)) {
        const key = `${upstream} ${role}`
        counts.set(key, { upstream, role, count: (counts.get(key)?.count ?? 0) + 1 })
      }
    }
  }
  return [...counts.values()]
}
