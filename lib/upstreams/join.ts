import type { LinkChange } from '../accounts/identities.ts'
import { toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import type { Failures } from '../events/failures.ts'
import { type UserRecord, isActive } from '../records/user.ts'
import type { RoleNames } from '../roles.ts'
import type { Proved } from '../proofs.ts'
import { findWay } from '../way.ts'
import { showIdentity } from '../ways/identity.ts'
import type { WayService } from '../ways/ways.ts'
import type { WayPolicy } from '../ways/words.ts'
import { UpstreamError } from './failure.ts'
import { type KnownIdentities, judgeStanding, listOthers } from './join-rule.ts'
import { toJoined } from './joined.ts'
import { mayLinkByItself } from './link-rule.ts'
import { type Linking, type Proven, toNew } from './linking.ts'
import { isAddressOf } from './policy.ts'
import { mayRejoin } from './rejoin.ts'

interface JoinParts {
  now: () => number
  roles: RoleNames
  ways: Pick<WayService, 'hasFactor' | 'withIssuers'>
  failures: Pick<Failures, 'recordRefusedIdentity'>
  findOnly: WayPolicy['findOnly']
  link: Linking['link']
}

/**
 * Whose an identity is. `proved`: that user's. `confirm`: it joins this account once the person has signed in to it, where `isOther`
 * says that the account has or had another identity of the same provider. `choose`: a new person chooses the name of their account, where
 * this one is suggested.
 */
export type Owner = { proved: Proved } | { confirm: { user_id: string, account: string, isOther: boolean } } | { choose: string }

/** Creates the function that decides what becomes of an identity whose address an account has. */
export function createJoin ({ now, roles, ways, failures, findOnly, link }: JoinParts) {
  /** An event tells administrators: with it they can let the identity take the place of the one before. */
  function recordRefused ({ id }: UserRecord, known: KnownIdentities, proven: Proven): string {
    const via = showIdentity(toNew(proven))
    const other = findWay(known, listOthers(known, proven)[0])
    failures.recordRefusedIdentity(id, defined({ ...via, former: other && showIdentity(other).subject }))
    return via.subject
  }

  /**
   * Checks that an identity may join an account by itself. Every such write passes here, with the record that it replaces.
   * @param isOpen whether the account takes a first identity of this upstream without a sign-in to it
   * @returns what else is written
   * @throws UpstreamError `taken`, `unknown`
   */
  async function decide (record: UserRecord, proven: Proven, isOpen: (record: UserRecord) => boolean): Promise<LinkChange> {
    const known = await ways.withIssuers(record)
    const standing = judgeStanding(known, proven)
    const rejoins = standing === 'other' && mayRejoin(known, proven, { now: now(), roles })
    const { address } = proven.claimed
    if (address === undefined || !isAddressOf(record, address)) throw new UpstreamError('taken')
    if (standing !== 'expected' && !isOpen(record)) throw new UpstreamError('taken')
    if (standing === 'undone' || (standing === 'other' && !rejoins)) {
      const error = new UpstreamError('taken')
      error.subject = recordRefused(record, known, proven)
      throw error
    }
    if (!isActive(record, toTimestamp(now()))) throw new UpstreamError('unknown')
    return toJoined(known, proven, { address, rejoins, now })
  }

  async function joinByItself (proven: Proven, holder: UserRecord, isOpen: (record: UserRecord) => boolean): Promise<Owner> {
    // Nothing is prepared for an identity that is refused.
    await decide(holder, proven, isOpen)
    return { proved: await link(proven, holder, { decide: async (record) => await decide(record, proven, isOpen) }) }
  }

  return async function join (proven: Proven, holder: UserRecord): Promise<Owner> {
    const { upstream, claimed: { address } } = proven
    if (upstream.link === 'never') throw new UpstreamError('taken')
    const known = await ways.withIssuers(holder)
    const standing = judgeStanding(known, proven)
    const confirm = { confirm: { user_id: holder.id, account: holder.account, isOther: standing !== 'free' } }
    // An address that was only seen may be another person's by now, who has made this account with it: no rule below joins by it.
    if (address === undefined) return confirm
    // They sign in by it and by nothing else, so they could not sign in to the account first.
    const isHeld = (record: UserRecord) => findOnly(record) === upstream.id
    if (isHeld(holder) || standing === 'expected') return await joinByItself(proven, holder, isHeld)
    const isOpen = (record: UserRecord) => mayLinkByItself(record, address, { roles, now: now() })
    const isFree = standing === 'free' || mayRejoin(known, proven, { now: now(), roles })
    if (upstream.link === 'verified' && isOpen(holder) && !await ways.hasFactor(holder)) {
      if (isFree) return await joinByItself(proven, holder, isOpen)
      recordRefused(holder, known, proven)
    }
    return confirm
  }
}
