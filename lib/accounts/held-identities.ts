import type { Identity } from '../../schemas/identity.ts'
import { paramError, permError } from '../errors.ts'
import type { ExpectedIdentity, UserRecord } from '../records/user.ts'
import type { Actor } from '../roles.ts'
import type { Store } from '../store/port.ts'
import { userNotFound } from '../user-changes/user-changes.ts'
import type { Users } from '../users/users.ts'
import type { HeldWay } from '../ways/existing-ways.ts'
import { WayError } from '../ways/way-error.ts'
import type { WayActor, WayService } from '../ways/ways.ts'

/** The identities at other providers that people have: their owner sees and unlinks them, and so does an administrator. */
export function createHeldIdentities ({ store, ways, users, unlink, replace, nameUpstream, joins }: {
  store: Store
  ways: Pick<WayService, 'list' | 'get'>
  users: Pick<Users, 'confirm'>
  /** Unlinks an identity, and tells its owner. */
  unlink: (actor: WayActor, id: string, options: { isEnd: boolean }) => Promise<unknown>
  /** Lets another identity take the place of one, and tells its owner. */
  replace: (actor: WayActor, expected: ExpectedIdentity, name: string) => Promise<unknown>
  /** What people call an upstream. Undefined for one that is configured no more. */
  nameUpstream: (id: string) => string | undefined
  /** Whether identities of an upstream join accounts at all. */
  joins: (id: string) => boolean
}) {
  const records = store.collection<UserRecord>('users')

  function show ({ id, way: { upstream = '', at }, credential: { last_used_at, material: { issuer, subject } } }: HeldWay): Identity {
    const name = nameUpstream(upstream)
    return {
      identity_id: id,
      upstream,
      ...(name !== undefined && { name }),
      issuer: String(issuer),
      subject: String(subject),
      created_at: at,
      ...(last_used_at !== undefined && { last_used_at })
    }
  }

  async function requireUser (user_id: string): Promise<UserRecord> {
    const user = await records.get(user_id)
    if (user === null) throw userNotFound()
    return user
  }

  /** @throws ErrNotFound unless it is an identity of this user */
  async function requireHeld (user: UserRecord, id: string): Promise<HeldWay> {
    const held = await ways.get(user, id)
    if (held?.way.kind !== 'upstream') throw new WayError('unknown')
    return held
  }

  return {
    /** The identities of a user, the first one first. @throws ErrNotFound */
    async list (user_id: string): Promise<Identity[]> {
      return (await ways.list(await requireUser(user_id))).filter(({ way }) => way.kind === 'upstream').map(show)
    },

    /** One identity of a user. @throws ErrNotFound */
    async get (user_id: string, id: string): Promise<Identity> {
      return show(await requireHeld(await requireUser(user_id), id))
    },

    /**
     * Unlinks an identity of the actor's own, with the proof that operations ask for.
     * @param options.isEnd whether all sessions and tokens end
     * @throws ErrNotFound, ErrUnknown with a challenge (RFC 9470), ErrPerm for the last way in
     */
    async remove (actor: Actor, id: string, { isEnd = true } = {}): Promise<void> {
      const { user_id } = actor
      const user = await requireUser(user_id)
      await requireHeld(user, id)
      // A request to the API brings no password, so the sign-in of its token is the proof.
      const { confirm } = await users.confirm(actor, { mayType: false })
      const { epoch = user.epoch } = actor
      await unlink({ user_id, epoch, confirm }, id, { isEnd })
    },

    /**
     * Unlinks an identity of somebody else, for an administrator or an operator. It ends the person's sessions.
     * @throws ErrNotFound, ErrPerm for the actor's own, and for the last way in
     */
    async removeOf (user_id: string, id: string, { user_id: by, confirm }: Actor): Promise<void> {
      if (by === user_id) throw permError('userId', 'one\'s own identities are unlinked by DELETE /user/identities/{identityId}')
      await requireHeld(await requireUser(user_id), id)
      // The person's own sessions have nothing to say in it.
      await unlink({ user_id, epoch: null, ...(confirm && { confirm }) }, id, { isEnd: true })
    },

    /**
     * Lets an identity take the place of the one that somebody else has at an upstream, for an administrator or an operator: the same person
     * has another subject there now. It ends the person's sessions.
     * @param expected as the event `identity.refused` has it
     * @throws ErrNotFound, ErrParam, ErrPerm for the actor's own
     */
    async replaceOf (user_id: string, expected: ExpectedIdentity, { user_id: by, confirm }: Actor): Promise<void> {
      if (by === user_id) throw permError('userId', 'administrators do not replace their own identities')
      await requireUser(user_id)
      const name = nameUpstream(expected.upstream)
      if (name === undefined) throw paramError('upstream', 'no such upstream')
      if (!joins(expected.upstream)) throw paramError('upstream', "its identities join no account: it has link: 'never'")
      await replace({ user_id, epoch: null, ...(confirm && { confirm }) }, expected, name)
    }
  }
}

export type HeldIdentities = ReturnType<typeof createHeldIdentities>
