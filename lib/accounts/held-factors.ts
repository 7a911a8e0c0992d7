import type { Factor, Factors as Shown } from '../../schemas/factor.ts'
import type { Clock } from '../clock.ts'
import { permError } from '../errors.ts'
import { generateId } from '../ids.ts'
import type { Notices } from '../notice.ts'
import { type UserChange, type UserRecord, listPresent } from '../records/user.ts'
import { checkUnrestricted } from '../restricted.ts'
import type { Actor } from '../roles.ts'
import type { Store } from '../store/port.ts'
import { userNotFound } from '../user-changes/user-changes.ts'
import type { People } from '../users/people.ts'
import type { Users } from '../users/users.ts'
import { countCodes } from '../ways/recovery-codes.ts'
import type { HeldWay } from '../ways/existing-ways.ts'
import { WayError } from '../ways/way-error.ts'
import type { WayActor, WayService } from '../ways/ways.ts'
import { isFactor } from '../ways/words.ts'

/** Never the material: it has seeds and hashes. */
function showFactor ({ id, way: { kind, at }, credential: { name, last_used_at } }: HeldWay): Factor {
  return {
    factor_id: id, kind: kind as Factor['kind'], created_at: at, ...(name !== undefined && { name }), ...(last_used_at !== undefined && { last_used_at })
  }
}

/** The second factors that people have: their owner sees and removes them, and an administrator removes them all. */
export function createHeldFactors ({ store, now, ways, users, people, notices, removeFactor, openFactors, issueEnrolLink }: {
  store: Store
  now: Clock
  ways: Pick<WayService, 'list' | 'get' | 'change' | 'demandsFactor'>
  users: Pick<Users, 'confirm'>
  people: Pick<People, 'requireReadable'>
  notices: Notices
  /** Removes a factor, and tells its owner. */
  removeFactor: (actor: WayActor, id: string, options: { isEnd: boolean }) => Promise<unknown>
  /** Ends the counts of wrong codes. */
  openFactors: (user: UserRecord) => Promise<unknown>
  /** Issues the link with which the user adds a factor, for who hands it over. Absent where there are no pages to add it. */
  issueEnrolLink?: ((user_id: string, enrolment: string) => Promise<string>) | undefined
}) {
  const records = store.collection<UserRecord>('users')

  async function requireUser (user_id: string): Promise<UserRecord> {
    const user = await records.get(user_id)
    if (user === null) throw userNotFound()
    return user
  }

  async function show (user: UserRecord): Promise<Shown> {
    const held = await ways.list(user)
    return { factors: held.filter(({ way }) => isFactor(way)).map(showFactor), recovery_codes: countCodes(held) }
  }

  return {
    /** The factors of a user, the first one first, and the number of recovery codes that are left. @throws ErrNotFound */
    list: async (user_id: string): Promise<Shown> => await show(await requireUser(user_id)),

    /** Those of somebody else, for a caller who may read them. @throws ErrNotFound, ErrPerm */
    listOf: async (user_id: string, actor: Actor): Promise<Shown> => await show(await people.requireReadable(user_id, actor)),

    /**
     * Removes a factor of the actor's own, with the proof that operations ask for.
     * @param options.isEnd whether all sessions and tokens end
     * @throws ErrNotFound, ErrUnknown with a challenge (RFC 9470), ErrPerm for the last way in
     */
    async remove (actor: Actor, id: string, { isEnd = true } = {}): Promise<void> {
      const { user_id } = actor
      const user = await requireUser(user_id)
      const held = await ways.get(user, id)
      if (held === null || !isFactor(held.way)) throw new WayError('unknown')
      const { confirm } = await users.confirm(actor, {})
      const { epoch = user.epoch } = actor
      await removeFactor({ user_id, epoch, confirm }, id, { isEnd })
    },

    /**
     * Removes all factors and recovery codes of a user, in one write that ends their sessions, and every enrolment that was begun.
     * While one is demanded of the user, they add a new one only with a link, which is mailed. Without mail it is returned.
     * @returns the number of removed factors, and what became of the link
     * @throws ErrNotFound, ErrPerm for the actor's own account, RestrictedError, ErrUnknown
     */
    async reset (user_id: string, actor: Actor): Promise<{ removed: number, sent?: boolean, link?: string }> {
      if (actor.user_id === user_id) throw permError('userId', 'another administrator, or the command line, resets the factors of an administrator')
      checkUnrestricted(actor)
      const enrolment = generateId(now())
      let [removed, isLinked, sent] = [0, false, false]
      const written = await ways.change(user_id, async (record) => {
        await actor.confirm?.()
        const { ways: held = {} } = record
        const gone = Object.entries(held).filter(([, way]) => isFactor(way) || way.kind === 'recovery')
        removed = gone.filter(([, way]) => isFactor(way)).length
        isLinked = issueEnrolLink !== undefined && ways.demandsFactor(record)
        const also: UserChange = isLinked ? { set: { enrol_ticket: enrolment } } : { unset: listPresent(record, 'enrol_ticket') }
        const mails = isLinked
          ? await notices.write('factor-reset-link', record, { of: enrolment })
          : removed > 0 ? await notices.write('factor-reset', record) : []
        sent = mails.length > 0
        const methods = gone.map(([id, { kind }]) => ({ kind, id }))
        return { remove: gone.map(([id]) => id), isEnd: true, also, happened: [{ type: 'factor.reset', id: user_id, methods }], notices: mails }
      }, userNotFound)
      await openFactors(written)
      if (!isLinked) return { removed }
      return sent ? { removed, sent } : { removed, sent, link: await issueEnrolLink!(user_id, enrolment) }
    }
  }
}

export type HeldFactors = ReturnType<typeof createHeldFactors>
