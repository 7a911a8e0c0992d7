import type { Upstream } from '../../schemas/upstream.ts'
import type { Accounts } from '../accounts/index.ts'
import { type LinkOptions, type NewIdentity, findLinked } from '../accounts/identities.ts'
import { toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import { OLDEST_PROOF, type Proof } from '../proofs.ts'
import type { UserRecord } from '../records/user.ts'
import type { Proved } from '../proofs.ts'
import { DuplicateKeyError } from '../store/port.ts'
import { toSessionKey, toWayKey } from '../way.ts'
import { WayError } from '../ways/way-error.ts'
import type { WayActor, WayService } from '../ways/ways.ts'
import type { Claimed } from './claims.ts'
import { UpstreamError } from './failure.ts'
import { nameUpstream } from './kinds.ts'

/** An identity that a provider has vouched for. */
export interface Proven {
  upstream: Upstream
  claimed: Claimed
  /** When the provider was asked: ISO 8601. Absent where a link or a session decides whether it is still good. */
  asked_at?: string
  /** Whether the provider was told to ask for a sign-in. */
  isAsked?: boolean
  /** The account that it has signed in to already, before a question, and the epoch then: what the answer itself ends is no end of it. */
  settled?: Settled | undefined
}

/** An account and its epoch, as an answer has left them. */
export interface Settled {
  user_id: string
  epoch: number
}

/** Whom a provider has named, whatever becomes of it. */
export interface Named {
  upstream: Pick<Upstream, 'id'>
  claimed: Pick<Claimed, 'issuer' | 'subject'>
}

/** The identity as a way into an account. */
export const toNew = ({ upstream: { id: upstream }, claimed: { issuer, subject } }: Named): NewIdentity => (
  { kind: 'upstream', upstream, issuer, key: toWayKey('upstream', issuer, subject), material: { issuer, subject } })

/** An identity that is another account's, or an address that has become one. */
export function refuseTaken (error: unknown): never {
  const isTaken = error instanceof DuplicateKeyError || (error instanceof WayError && error.refusal === 'in_use')
  throw isTaken ? new UpstreamError('taken', error) : error
}

/** Requires that the sessions of a user have not ended since the provider was asked. @throws UpstreamError `over` */
export function checkEpoch ({ id, epoch, epoch_at }: UserRecord, { asked_at, settled }: Pick<Proven, 'asked_at' | 'settled'>): void {
  if (settled?.user_id === id && settled.epoch === epoch) return
  if (asked_at !== undefined && epoch_at !== undefined && epoch_at > asked_at) throw new UpstreamError('over')
}

/** Links identities to accounts, and says what a sign-in by them has proved. */
export function createLinking ({ now, ways, accounts, applyRoles }: {
  now: () => number
  ways: Pick<WayService, 'hasOther'>
  accounts: Pick<Accounts, 'linkIdentity'>
  /** Writes the roles that the answer gives. */
  applyRoles: (proven: Proven, user: UserRecord) => Promise<Pick<UserRecord, 'id' | 'epoch'>>
}) {
  /**
   * What a sign-in goes on with. It stands since the time at which, as the provider says, the person proved who they are: a day at most,
   * because sessions are counted from it. A provider that does not say proves when only if it was told to ask, for a person with nothing else.
   */
  function toProved (user: Pick<UserRecord, 'id' | 'epoch'>, way: string, { claimed, isAsked = false }: Proven, hasOther = false): Proved {
    const { at, both, factor, issuer, sid, asked_at } = claimed
    const time = at === undefined ? now() : Math.min(Math.max(at, now() - OLDEST_PROOF), now())
    const proof = defined({
      at: toTimestamp(time),
      undated: at === undefined && (hasOther || !isAsked) ? true : undefined,
      both: both ? true : undefined,
      factor: both ? factor : undefined,
      session: sid === undefined ? undefined : toSessionKey(issuer, sid),
      asked_at
    })
    return { user_id: user.id, user_epoch: user.epoch, way, kind: 'upstream', ...proof }
  }

  /** Links an identity to a user who has proved that they are both. */
  async function linkTo (proven: Proven, actor: WayActor, options?: LinkOptions): Promise<UserRecord> {
    return await accounts.linkIdentity(actor, toNew(proven), nameUpstream(proven.upstream), options).catch(refuseTaken)
  }

  return {
    toProved,

    linkTo,

    /**
     * Links an identity, and resolves to what a sign-in goes on with.
     * @param proofs of a person who has signed in. Absent: the provider's word about the address is the proof
     */
    async link (proven: Proven, user: UserRecord, options?: LinkOptions, proofs?: readonly Proof[]): Promise<Proved> {
      const written = await linkTo(proven, { user_id: user.id, epoch: user.epoch, proofs }, {
        ...options,
        decide (record) {
          checkEpoch(record, proven)
          return options?.decide?.(record)
        }
      })
      const way = findLinked(written, toNew(proven))
      return toProved(await applyRoles(proven, written), way, proven, await ways.hasOther(written))
    }
  }
}

export type Linking = ReturnType<typeof createLinking>
