import type { Factor, Factors as Shown } from '../../schemas/factor.ts'
import { permError } from '../errors.ts'
import type { UserRecord } from '../records.ts'
import type { Actor } from '../roles.ts'
import type { Store } from '../store/port.ts'
import { userNotFound } from '../users/stored-users.ts'
import type { Users } from '../users/users.ts'
import { countCodes } from './factors.ts'
import { type HeldWay, type WayActor, WayError, type WayService } from './ways.ts'
import { isFactor } from './words.ts'

/** Never the material: it has seeds and hashes. */
function showFactor ({ id, way: { kind, at }, credential: { name, last_used_at } }: HeldWay): Factor {
  return {
    factor_id: id, kind: kind as Factor['kind'], created_at: at, ...(name !== undefined && { name }), ...(last_used_at !== undefined && { last_used_at })
  }
}

/** The second factors that people have: their owner sees and removes them, and an administrator removes them all. */
export function createHeldFactors ({ store, ways, users, removeFactor, onReset }: {
  store: Store
  ways: Pick<WayService, 'list' | 'get' | 'change'>
  users: { confirm: (...parts: Parameters<Users['confirm']>) => Promise<unknown> }
  /** Removes a factor, and tells its owner. */
  removeFactor: (actor: WayActor, id: string, options: { isEnd: boolean }) => Promise<unknown>
  /** Tells the user whose factors were removed. */
  onReset: (user_id: string) => Promise<void>
}) {
  const records = store.collection<UserRecord>('users')

  async function requireUser (user_id: string): Promise<UserRecord> {
    const user = await records.get(user_id)
    if (user === null) throw userNotFound()
    return user
  }

  return {
    /** The factors of a user, the first one first, and the number of recovery codes that are left. @throws ErrNotFound */
    async list (user_id: string): Promise<Shown> {
      const user = await requireUser(user_id)
      const held = await ways.list(user)
      return { factors: held.filter(({ way }) => isFactor(way)).map(showFactor), recovery_codes: countCodes(held) }
    },

    /**
     * Removes a factor of the actor's own, with the proof that operations ask for.
     * @param options.isEnd whether all sessions and tokens end
     * @throws ErrNotFound, ErrUnknown with a challenge (RFC 9470), ErrPerm for the last way in
     */
    async remove (actor: Actor, id: string, { isEnd = true } = {}): Promise<void> {
      const { user_id, confirm } = actor
      const user = await requireUser(user_id)
      const held = await ways.get(user, id)
      if (held === null || !isFactor(held.way)) throw new WayError('unknown')
      // A factor that is removed never comes back under its id. So whoever still has it at the write had it at this check, which has
      // asked them for a proof of both kinds.
      await users.confirm(actor, {})
      const { epoch = user.epoch } = actor
      await removeFactor({ user_id, epoch, ...(confirm && { confirm }) }, id, { isEnd })
    },

    /**
     * Removes all factors and recovery codes of a user, in one write that ends their sessions, and every enrolment that was begun.
     * @returns the number of removed factors
     * @throws ErrNotFound, ErrPerm for the actor's own account, ErrUnknown
     */
    async reset (user_id: string, actor: Actor): Promise<{ removed: number }> {
      if (actor.user_id === user_id) throw permError('userId', 'another administrator, or the command line, resets the factors of an administrator')
      let removed = 0
      await ways.change(user_id, async ({ ways: held = {} }) => {
        await actor.confirm?.()
        const ids = Object.keys(held).filter((id) => isFactor(held[id]!) || held[id]!.kind === 'recovery')
        removed = ids.filter((id) => isFactor(held[id]!)).length
        return { remove: ids, isEnd: true, happened: [{ type: 'factor.reset', id: user_id }] }
      }, userNotFound)
      if (removed > 0) await onReset(user_id)
      return { removed }
    }
  }
}

export type HeldFactors = ReturnType<typeof createHeldFactors>
