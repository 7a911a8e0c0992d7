import type { Upstream } from '../../schemas/upstream.ts'
import type { Accepted } from '../accounts/accept.ts'
import type { Accounts } from '../accounts/index.ts'
import type { NewIdentity } from '../accounts/identities.ts'
import { checkAccount } from '../checks.ts'
import { toTimestamp } from '../clock.ts'
import { IdentityError, paramError } from '../errors.ts'
import type { Failures } from '../events/failures.ts'
import { nameCaller } from '../events/origin.ts'
import { generateId, randomText } from '../ids.ts'
import type { Language } from '../pages/texts/language.ts'
import { type UserRecord, createUserRecord, isAddress, isOfDomain } from '../records.ts'
import type { RoleNames } from '../roles.ts'
import type { Proved } from '../sign-in/sign-ins.ts'
import { proveAddress } from '../users/address-proof.ts'
import { findByName } from '../users/addresses.ts'
import type { StoredUsers } from '../users/stored-users.ts'
import { toWayKey } from '../way.ts'
import { showIdentity } from '../ways/identity.ts'
import { isInUse } from '../ways/credentials.ts'
import { WayError } from '../ways/way-error.ts'
import type { WayActor, WayService } from '../ways/ways.ts'
import type { WayPolicy } from '../ways/words.ts'
import type { Claimed } from './claims.ts'
import { UpstreamError } from './failure.ts'
import { nameUpstream } from './kinds.ts'
import { mayLinkByItself } from './link-rule.ts'
import { mayJoin } from './policy.ts'

export interface IdentityParts {
  now: () => number
  roles: RoleNames
  stored: StoredUsers
  ways: WayService
  accounts: Pick<Accounts, 'linkIdentity' | 'acceptByIdentity' | 'suggestAddress'>
  failures: Pick<Failures, 'recordIdentity'>
  findOnly: WayPolicy['findOnly']
  signUp: boolean
  signUpDomains?: readonly string[] | undefined
}

/** An identity that a provider has vouched for. */
export interface Proven {
  upstream: Upstream
  claimed: Claimed
}

/**
 * Whose an identity is. `proved`: that user's. `confirm`: it joins this account once the person has signed in to it. `choose`: a new
 * person chooses the name of their account, where this one is suggested.
 */
export type Owner = { proved: Proved } | { confirm: { user_id: string, account: string } } | { choose: string }

/** Milliseconds since when a proof counts at most: sessions are counted from it, and would otherwise be over when they begin. */
const OLDEST = 24 * 60 * 60_000

/** Milliseconds for which a proof is one of just now: as long as a sign-in may take. */
const RECENT = 10 * 60_000

/** Characters that make a suggested account one of its own. */
const RANDOM = 8

/** What is recorded is no act of the user who is signed in in this browser so far. */
const nameNobody = (): void => nameCaller({})

/** An identity that is another account's. */
function refuseTaken (error: unknown): never {
  throw error instanceof WayError && error.refusal === 'in_use' ? new UpstreamError('taken') : error
}

/** Finds whose an identity is, makes accounts of new people, and links. Issuer and subject decide, and never an address. */
export function createIdentities ({ now, roles, stored, ways, accounts, failures, findOnly, signUp, signUpDomains }: IdentityParts) {
  const { users, insertUser, changeUser } = stored

  const toNew = ({ upstream: { id: upstream }, claimed: { issuer, subject } }: Proven): NewIdentity => (
    { kind: 'upstream', upstream, key: toWayKey('upstream', issuer, subject), material: { issuer, subject } })

  /** What a sign-in goes on with. It stands since the time at which, as the provider says, the person proved who they are. */
  function toProved (user: Pick<UserRecord, 'id' | 'epoch'>, way: string, { at = now(), both }: Claimed): Proved {
    return { user_id: user.id, user_epoch: user.epoch, way, kind: 'upstream', at: toTimestamp(Math.min(Math.max(at, now() - OLDEST), now())), ...(both && { both }) }
  }

  async function findProved ({ upstream, claimed }: Proven): Promise<Proved | null> {
    const found = await ways.find(toNew({ upstream, claimed }).key)
    if (found === null) return null
    const { user, held } = found
    // Another configuration of the same provider: what it may do is not what this one may.
    if (held.way.upstream !== upstream.id) throw new UpstreamError('taken')
    if (upstream.sync === 'always' && claimed.name !== '' && claimed.name !== user.name) {
      await changeUser(user.id, () => ({ set: { name: claimed.name }, happened: [{ type: 'user.updated', id: user.id, changed: ['name'] }] }))
    }
    await ways.touch(held.credential)
    return toProved(user, held.id, claimed)
  }

  /** Whether somebody may make themselves an account with what was proved. @throws UpstreamError with the reason */
  function checkMayCreate ({ upstream, claimed: { address } }: Proven): void {
    if (!upstream.create || !signUp) throw new UpstreamError('unknown')
    if (signUpDomains === undefined) return
    if (address === undefined) throw new UpstreamError('no_address')
    if (!isOfDomain(address, signUpDomains)) throw new UpstreamError('domain')
  }

  /** Links an identity to a user who has proved that they are both. */
  async function linkTo (proven: Proven, actor: WayActor, decide?: (record: UserRecord) => undefined): Promise<UserRecord> {
    return await accounts.linkIdentity(actor, toNew(proven), nameUpstream(proven.upstream), decide)
      .catch(refuseTaken)
  }

  async function link (proven: Proven, user: UserRecord, decide?: (record: UserRecord) => undefined): Promise<Proved> {
    const written = await linkTo(proven, { user_id: user.id, epoch: user.epoch }, decide)
    const { key } = toNew(proven)
    const [way] = Object.entries(written.ways ?? {}).find(([, one]) => one.key === key)!
    return toProved(written, way, proven.claimed)
  }

  /** What becomes of an identity whose address an account has. */
  async function join (proven: Proven, holder: UserRecord): Promise<Owner> {
    const { upstream, claimed } = proven
    if (upstream.link === 'never') throw new UpstreamError('taken')
    const confirm = { confirm: { user_id: holder.id, account: holder.account } }
    // An address that was only seen may be another person's by now, who has made this account with it.
    if (claimed.address === undefined) return confirm
    // They sign in by it and by nothing else, so they could not sign in to the account first.
    if (findOnly(holder) === upstream.id) {
      // Found by an account name that was their address once: it may be a colleague's now.
      const check = (record: UserRecord): undefined => { if (findOnly(record) !== upstream.id || record.email !== claimed.address) throw new UpstreamError('taken') }
      check(holder)
      return { proved: await link(proven, holder, check) }
    }
    const may = (record: UserRecord) => mayLinkByItself(record, claimed.address!, { roles, now: now() })
    if (upstream.link === 'verified' && may(holder) && !await ways.hasFactor(holder)) {
      return { proved: await link(proven, holder, (record) => { if (!may(record)) throw new UpstreamError('taken') }) }
    }
    return confirm
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
      const holder = known === undefined ? null : await findByName(users, known)
      if (holder !== null) return await join(proven, holder)
      checkMayCreate(proven)
      return { choose: address ?? `${upstream.id}-${randomText(RANDOM).toLowerCase()}` }
    },

    /** Whether the provider has asked the person just now. */
    isRecent: ({ at = '' }: Proved): boolean => at > toTimestamp(now() - RECENT),

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
      const id = generateId(now())
      const made = await ways.prepareNew(id, toNew(proven))
      const record = createUserRecord(now(), {
        id,
        account: chosen,
        ...(address !== undefined && proveAddress(address, { upstream: proven.upstream.id }, now())),
        roles: {},
        name,
        info: {},
        ...made.fields,
        ...(language !== undefined && { language })
      }, false)
      try {
        await insertUser(record, [{ type: 'user.signed_up', id }, { type: 'identity.linked', id, via: showIdentity(toNew(proven)) }], () => paramError('account', 'is taken'))
      } catch (error) {
        await made.drop(error)
        const isTaken = error instanceof IdentityError && error.code === 'ErrParam'
        if (!isInUse(error) && !isTaken) throw error
        // Another sign-in with the same identity may have come first. A store says one of the fields that clash.
        const proved = await findProved(proven)
        if (proved !== null) return proved
        throw isTaken && chosen !== address ? error : new UpstreamError('taken')
      }
      if (seen !== undefined) await accounts.suggestAddress(record, seen, nameUpstream(proven.upstream), language)
      return toProved(record, made.id, claimed)
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
      return { ...accepted, proved: toProved({ id: accepted.user_id, epoch: accepted.epoch }, accepted.way, claimed) }
    },

    /**
     * Links an identity to the account that the person has just signed in to, by all its steps.
     * @throws UpstreamError `taken`, WayError `most`, ErrUnknown when the account has changed meanwhile
     */
    async confirm (proven: Proven, { user_id, epoch }: { user_id: string, epoch: number }): Promise<void> {
      const known = await ways.find(toNew(proven).key)
      if (known?.user.id === user_id) return
      const user = await users.get(user_id)
      if (user === null || user.epoch !== epoch) throw new IdentityError('ErrUnknown', 'the sign-in has ended')
      await link(proven, user)
    }
  }
}

export type Identities = ReturnType<typeof createIdentities>
