import type { Upstream } from '../../schemas/upstream.ts'
import type { UserRecord } from '../records/user.ts'
import type { Proved } from '../proofs.ts'
import type { StoredUsers } from '../users/stored-users.ts'
import type { CredentialRecord } from '../way.ts'
import { showIdentity } from '../ways/identity.ts'
import type { WayService } from '../ways/ways.ts'
import { findBound } from './bounds.ts'
import { UpstreamError } from './failure.ts'
import { type Linking, type Proven, checkEpoch, toNew } from './linking.ts'
import type { RoleChanges } from './role-changes.ts'

export interface ProvenParts {
  ways: Pick<WayService, 'find' | 'hasOther' | 'stamp' | 'touch'>
  /** Absent where no upstream gives roles. */
  roleChanges?: Pick<RoleChanges, 'apply'> | undefined
}

/** Creates the function that writes the roles that an answer gives, before the proof is judged. The epoch may be another one afterwards. */
export function createRoleApplication ({ roleChanges }: Pick<ProvenParts, 'roleChanges'>) {
  return async function applyRoles (proven: Proven, user: Pick<UserRecord, 'id' | 'epoch'>): Promise<Pick<UserRecord, 'id' | 'epoch'>> {
    const { upstream, claimed: { roles: answered } } = proven
    if (answered === undefined || roleChanges === undefined) return user
    return await roleChanges.apply(upstream, answered, user, showIdentity(toNew(proven)))
  }
}

/** Finds the people whose identities these are, and keeps what the answer says of them. */
export function createProvenIdentities ({ ways, changeUser, toProved, applyRoles }: Omit<ProvenParts, 'roleChanges'> & Pick<Linking, 'toProved'> & {
  changeUser: StoredUsers['changeUser'], applyRoles: ReturnType<typeof createRoleApplication>
}) {
  /** Keeps the time of an answer. Where a bound counts from it, it is that of each one. */
  async function noteAnswer (upstream: Upstream, credential: CredentialRecord): Promise<void> {
    const isCounted = findBound(upstream, 'session') !== undefined || findBound(upstream, 'refresh') !== undefined
    await (isCounted ? ways.stamp(credential) : ways.touch(credential))
  }

  return {
    noteAnswer,

    /**
     * What an identity that somebody has here proves. Null: nobody has it.
     * @throws UpstreamError `taken`, `over`
     */
    async findProved (proven: Proven): Promise<Proved | null> {
      const { upstream, claimed } = proven
      const found = await ways.find(toNew(proven).key)
      if (found === null) return null
      const { user, held } = found
      // Another configuration of the same provider: what it may do is not what this one may.
      if (held.way.upstream !== upstream.id) throw new UpstreamError('taken')
      checkEpoch(user, proven)
      if (upstream.sync === 'always' && claimed.name !== '' && claimed.name !== user.name) {
        await changeUser(user.id, () => ({ set: { name: claimed.name }, happened: [{ type: 'user.updated', id: user.id, changed: ['name'] }] }))
      }
      await noteAnswer(upstream, held.credential)
      return toProved(await applyRoles(proven, user), held.id, proven, await ways.hasOther(user))
    }
  }
}

export type ProvenIdentities = ReturnType<typeof createProvenIdentities>
