import type { Accepted } from '../accounts/accept.ts'
import type { Accounts } from '../accounts/index.ts'
import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import { IdentityError } from '../errors.ts'
import type { Failures } from '../events/failures.ts'
import { nameCaller } from '../events/origin.ts'
import { randomText } from '../ids.ts'
import type { Language } from '../pages/texts/language.ts'
import type { Proof } from '../proofs.ts'
import { RestrictedError } from '../restricted.ts'
import type { Proved } from '../proofs.ts'
import { findAllByName } from '../users/addresses.ts'
import type { StoredUsers } from '../users/stored-users.ts'
import { showIdentity } from '../ways/identity.ts'
import type { WayActor, WayService } from '../ways/ways.ts'
import type { WayPolicy } from '../ways/words.ts'
import { UPSTREAM_REASONS, UpstreamError, type UpstreamRefusal } from './failure.ts'
import { type Owner, createJoin } from './join.ts'
import { nameUpstream } from './kinds.ts'
import { type Named, type Proven, createLinking, refuseTaken, toNew } from './linking.ts'
import { type NewPeopleParts, createNewPeople } from './new-people.ts'
import { mayJoin } from './policy.ts'
import { type ProvenParts, createProvenIdentities, createRoleApplication } from './proven-identities.ts'

export interface IdentityParts extends Pick<Base, 'now' | 'roles'>, Omit<NewPeopleParts & ProvenParts, 'accounts' | 'ways'> {
  stored: StoredUsers
  ways: WayService
  accounts: Pick<Accounts, 'linkIdentity' | 'acceptByIdentity' | 'suggestAddress'>
  failures: Pick<Failures, 'recordIdentity' | 'recordRefusedIdentity' | 'defer'>
  findOnly: WayPolicy['findOnly']
}

/** Milliseconds for which a proof is one of just now: as long as a sign-in may take. */
const RECENT = 10 * 60_000

/** Characters that make a suggested account one of its own. */
const RANDOM = 8

/** What is recorded is no act of the user who is signed in in this browser so far. */
const nameNobody = (): void => nameCaller({})

/** Finds whose an identity is, makes accounts of new people, and links. Issuer and subject decide, and never an address. */
export function createIdentities (parts: IdentityParts) {
  const { now, stored, ways, accounts, failures, findOnly } = parts
  const { users } = stored
  const applyRoles = createRoleApplication(parts)
  const { linkTo, link, toProved } = createLinking({ ...parts, applyRoles })
  const { noteAnswer, findProved } = createProvenIdentities({ ...parts, ...stored, toProved, applyRoles })
  const people = createNewPeople({ ...parts, ...stored, findProved, toProved })
  const join = createJoin({ ...parts, link })

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
      people.checkMayCreate(proven)
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

    /** Records that an identity could not sign in, after the response. */
    recordFailure (named: Named, refusal: UpstreamRefusal): void {
      const reason = UPSTREAM_REASONS[refusal]
      if (reason === undefined) return
      const identity = toNew(named)
      failures.defer(async () => {
        const found = await ways.find(identity.key)
        const method = defined({ kind: 'upstream' as const, id: found?.held.id })
        failures.recordIdentity(found?.user.id, showIdentity(identity), { reason, method, isKnown: found !== null })
      })
    },

    /** Records that the answer of a provider has named nobody. */
    recordNobody (upstream: string, refusal: UpstreamRefusal): void {
      const reason = UPSTREAM_REASONS[refusal]
      if (reason !== undefined) failures.recordIdentity(undefined, { upstream }, { reason, method: { kind: 'upstream' } })
    },

    /**
     * Makes the account of a new person. The record names the identity from the first write on.
     * @param account their choice. Without a proved address it must not be an address
     * @throws ErrParam for an account that is taken or wrong, UpstreamError
     */
    async create (proven: Proven, account: string, { language }: { language?: Language | undefined } = {}): Promise<Proved> {
      nameNobody()
      return await people.create(proven, account, language)
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
