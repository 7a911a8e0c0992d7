import type { Upstream } from '../../schemas/upstream.ts'
import type { Accepted } from '../accounts/accept.ts'
import type { Accounts } from '../accounts/index.ts'
import { checkAccount } from '../checks.ts'
import { toTimestamp } from '../clock.ts'
import { IdentityError, paramError } from '../errors.ts'
import type { Failures } from '../events/failures.ts'
import { nameCaller } from '../events/origin.ts'
import { generateId, randomText } from '../ids.ts'
import type { Language } from '../pages/texts/language.ts'
import type { Proof } from '../proofs.ts'
import { type UserRecord, createUserRecord, isAddress, isOfDomain } from '../records.ts'
import { RestrictedError } from '../restricted.ts'
import type { RoleNames } from '../roles.ts'
import type { Proved } from '../sign-in/sign-ins.ts'
import { proveAddress } from '../users/address-proof.ts'
import { findAllByName } from '../users/addresses.ts'
import type { FormerNames } from '../users/former-names.ts'
import type { StoredUsers } from '../users/stored-users.ts'
import type { CredentialRecord } from '../way.ts'
import { showIdentity } from '../ways/identity.ts'
import { isInUse } from '../ways/credentials.ts'
import type { WayActor, WayService } from '../ways/ways.ts'
import type { WayPolicy } from '../ways/words.ts'
import { findBound } from './bounds.ts'
import { UpstreamError } from './failure.ts'
import { toNewRoles } from './claimed-roles.ts'
import { type Owner, createJoin } from './join.ts'
import { nameUpstream } from './kinds.ts'
import { type Proven, checkEpoch, createLinking, refuseTaken, toNew } from './linking.ts'
import { mayJoin } from './policy.ts'
import type { RoleChanges } from './role-changes.ts'

export interface IdentityParts {
  now: () => number
  roles: RoleNames
  stored: StoredUsers
  ways: WayService
  accounts: Pick<Accounts, 'linkIdentity' | 'acceptByIdentity' | 'suggestAddress'>
  failures: Pick<Failures, 'recordIdentity' | 'recordRefusedIdentity'>
  findOnly: WayPolicy['findOnly']
  names: Pick<FormerNames, 'checkChosen'>
  /** Absent where no upstream gives roles. */
  roleChanges?: Pick<RoleChanges, 'apply'> | undefined
  signUp: boolean
  signUpDomains?: readonly string[] | undefined
}

/** Milliseconds for which a proof is one of just now: as long as a sign-in may take. */
const RECENT = 10 * 60_000

/** Characters that make a suggested account one of its own. */
const RANDOM = 8

/** What is recorded is no act of the user who is signed in in this browser so far. */
const nameNobody = (): void => nameCaller({})

/** Finds whose an identity is, makes accounts of new people, and links. Issuer and subject decide, and never an address. */
export function createIdentities ({ now, roles, stored, ways, accounts, failures, findOnly, names, roleChanges, signUp, signUpDomains }: IdentityParts) {
  const { users, insertUser, changeUser, removeUser } = stored
  const { linkTo, link, toProved } = createLinking({ now, ways, accounts, applyRoles })
  const join = createJoin({ now, roles, ways, failures, findOnly, link })

  /** Keeps the time of an answer. Where a bound counts from it, it is that of each one. */
  async function noteAnswer (upstream: Upstream, credential: CredentialRecord): Promise<void> {
    const isCounted = findBound(upstream, 'session') !== undefined || findBound(upstream, 'refresh') !== undefined
    await (isCounted ? ways.stamp(credential) : ways.touch(credential))
  }

  /** Writes the roles that the answer gives, before the proof is judged. The epoch may be another one afterwards. */
  async function applyRoles (proven: Proven, user: Pick<UserRecord, 'id' | 'epoch'>): Promise<Pick<UserRecord, 'id' | 'epoch'>> {
    const { upstream, claimed: { roles: answered } } = proven
    if (answered === undefined || roleChanges === undefined) return user
    return await roleChanges.apply(upstream, answered, user, showIdentity(toNew(proven)))
  }

  async function findProved (proven: Proven): Promise<Proved | null> {
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

  /** Whether somebody may make themselves an account with what was proved. @throws UpstreamError with the reason */
  function checkMayCreate ({ upstream, claimed: { address } }: Proven): void {
    if (!upstream.create || !signUp) throw new UpstreamError('unknown')
    if (signUpDomains === undefined) return
    if (address === undefined) throw new UpstreamError('no_address')
    if (!isOfDomain(address, signUpDomains)) throw new UpstreamError('domain')
  }

  return {
    /**
     * Finds whose an identity is.
     * @throws UpstreamError `unknown`, `taken`, `domain`, `no_address`
     */
    async settle (proven: Proven): Promise<Owner> {
      nameNobody()
      const proved = await findProved(proven)
      if (proved !== null) return { proved }
      const { upstream, claimed: { address, seen } } = proven
      const known = address ?? seen
      const [holder, second] = known === undefined ? [] : await findAllByName(users, known)
      if (second !== undefined) throw new UpstreamError('taken')
      if (holder !== undefined) return await join(proven, holder)
      checkMayCreate(proven)
      return { choose: address ?? `${upstream.id}-${randomText(RANDOM).toLowerCase()}` }
    },

    /** Keeps that a provider has answered for this identity of this user. False for another one: that changes nothing. */
    async renew ({ upstream, claimed }: Proven, { user_id, way }: { user_id: string, way: string }): Promise<boolean> {
      const found = await ways.find(toNew({ upstream, claimed }).key)
      if (found?.user.id !== user_id || found.held.id !== way || found.held.way.upstream !== upstream.id) return false
      await noteAnswer(upstream, found.held.credential)
      return true
    },

    /** The time since when a proof is one of just now. */
    findRecent: (): string => toTimestamp(now() - RECENT),

    /** Records that an identity could not sign in. */
    recordFailure (proven: Proven, user_id?: string): void {
      failures.recordIdentity(user_id, showIdentity(toNew(proven)))
    },

    /**
     * Makes the account of a new person. The record names the identity from the first write on.
     * @param account their choice. Without a proved address it must not be an address
     * @throws ErrParam for an account that is taken or wrong, UpstreamError
     */
    async create (proven: Proven, account: string, { language }: { language?: Language | undefined } = {}): Promise<Proved> {
      nameNobody()
      checkMayCreate(proven)
      const { claimed } = proven
      const { address, seen, name } = claimed
      const chosen = checkAccount(account.trim())
      if (chosen !== address && isAddress(chosen)) throw paramError('account', 'must not be an address, because none was proved')
      if (chosen !== address) await names.checkChosen(chosen)
      const id = generateId(now())
      const made = await ways.prepareNew(id, toNew(proven))
      const record = createUserRecord(now(), {
        id,
        account: chosen,
        ...(address !== undefined && proveAddress(address, { upstream: proven.upstream.id }, now())),
        ...toNewRoles(proven.upstream, claimed.roles),
        name,
        info: {},
        ...made.fields,
        ...(language !== undefined && { language })
      }, false)
      try {
        await insertUser(record, [{ type: 'user.signed_up', id, granted: Object.keys(record.roles) }, { type: 'identity.linked', id, via: showIdentity(toNew(proven)) }], () => paramError('account', 'is taken'))
      } catch (error) {
        await made.drop(error)
        const isTaken = error instanceof IdentityError && error.code === 'ErrParam'
        if (!isInUse(error) && !isTaken) throw error
        // Another sign-in with the same identity may have come first. A store says one of the fields that clash.
        const proved = await findProved(proven)
        if (proved !== null) return proved
        throw isTaken && chosen !== address ? error : new UpstreamError('taken')
      }
      // Somebody of this name may have been deleted since: their name was remembered before.
      if (chosen !== address) {
        await names.checkChosen(chosen).catch(async (error: unknown) => {
          await removeUser(id)
          throw error
        })
      }
      if (seen !== undefined) await accounts.suggestAddress(record, seen, nameUpstream(proven.upstream), language)
      return toProved(record, made.id, proven)
    },

    /**
     * Links an identity to the account of a signed-in person, who has asked for it in this session.
     * @throws UpstreamError `taken`, WayError `most`, ErrUnknown when the session has ended
     */
    async linkOwn (proven: Proven, actor: WayActor): Promise<void> {
      const known = await ways.find(toNew(proven).key)
      if (known?.user.id !== actor.user_id) await linkTo(proven, actor)
    },

    /**
     * Completes an invitation or a sign-up by an identity, see Accounts.acceptByIdentity.
     * @param ticket of the link
     * @throws UpstreamError `off` where the person may not sign in by it, `taken`; ErrTicket
     */
    async accept (proven: Proven, ticket: string, language?: Language): Promise<Accepted & { proved: Proved }> {
      const { upstream, claimed } = proven
      const accepted = await accounts.acceptByIdentity(ticket, toNew(proven), nameUpstream(upstream), {
        displayName: claimed.name,
        language,
        decide (becomes) { if (!mayJoin(upstream, findOnly(becomes))) throw new UpstreamError('off') }
      }).catch(refuseTaken)
      const user = await applyRoles(proven, { id: accepted.user_id, epoch: accepted.epoch })
      return { ...accepted, epoch: user.epoch, proved: toProved(user, accepted.way, { ...proven, isAsked: true }) }
    },

    /**
     * Links an identity to the account that the person has just signed in to, by all its steps. One that was proved before their last
     * sessions ended is not linked.
     * @throws UpstreamError `taken`, `restricted`, WayError `most`, ErrUnknown when the account has changed meanwhile
     */
    async confirm (proven: Proven, { user_id, epoch, proofs }: { user_id: string, epoch: number, proofs: readonly Proof[] }): Promise<void> {
      const known = await ways.find(toNew(proven).key)
      if (known?.user.id === user_id) return
      const user = await users.get(user_id)
      if (user === null || user.epoch !== epoch) throw new IdentityError('ErrUnknown', 'the sign-in has ended')
      await link(proven, user, undefined, proofs).catch((error: unknown) => {
        if (error instanceof UpstreamError && error.refusal === 'over') return
        throw error instanceof RestrictedError ? new UpstreamError('restricted') : error
      })
    }
  }
}

export type Identities = ReturnType<typeof createIdentities>
