import type { Reason } from '../../schemas/reason.ts'
import { defined } from '../defined.ts'
import type { Proof } from '../proofs.ts'
import { type UserRecord, hasFormerPassword } from '../records/user.ts'
import type { AccountLimits } from '../throttling/account-limits.ts'
import type { Attempts, Standing, Target } from '../throttling/attempts.ts'
import { PASSWORD, findWay } from '../way.ts'
import type { HeldWay } from '../ways/existing-ways.ts'
import { toCodesTarget } from '../ways/factor-use.ts'
import { countCodes } from '../ways/recovery-codes.ts'
import type { WayService } from '../ways/ways.ts'
import { type WayPolicy, findFallen } from '../ways/words.ts'
import { listNames } from '../users/addresses.ts'
import type { Opening } from './remedies.ts'

/** Something that refuses a person. */
export interface Refusal {
  reason: Reason
  /** Until when waiting helps: ISO 8601. */
  until?: string
  /** The provider, app or mail that it is about. */
  detail?: string
  /** The id of the method that it concerns. Absent: the whole sign-in. */
  method?: string
  /** What opens it, where that is not what opens the reason in general (remedies.ts). */
  opening?: Opening
}

/** A method of a person, and why it does not work now. */
export interface Method extends Pick<Proof, 'kind' | 'uv'> {
  id: string
  rk?: boolean
  name?: string
  created_at?: string
  last_used_at?: string
  why?: Refusal
}

export interface MethodParts {
  ways: Pick<WayService, 'list' | 'withExisting'>
  policy: WayPolicy
  attempts: Pick<Attempts, 'read'>
  limits: Pick<AccountLimits, 'read'>
  /** Whether the former system can be asked at present. Absent: there is none. */
  canAskFormer?: (() => boolean) | undefined
}

/** What refuses the next attempt, by the count of failures. */
function findHeld ({ isClosed, until }: Standing, closed: 'password_locked' | 'factor_locked'): Refusal | undefined {
  if (isClosed) return { reason: closed }
  return until === undefined ? undefined : { reason: 'paused', until }
}

/** Reads the methods of people, by the conditions under which a sign-in takes them. It counts, uses and writes nothing. */
export function createMethods ({ ways, policy, attempts, limits, canAskFormer }: MethodParts) {
  const readHeld = async (target: Target, closed: 'password_locked' | 'factor_locked') => findHeld(await attempts.read(target), closed)

  /** Why attempts of some networks are refused for some seconds, as far as this machine knows. */
  async function findLimited (user: UserRecord): Promise<Refusal | undefined> {
    const { until } = await limits.read({ names: listNames(user), user_id: user.id })
    return until === undefined ? undefined : { reason: 'limited', until }
  }

  async function findPasswordRefusal (user: UserRecord): Promise<Refusal | undefined> {
    const only = policy.findOnly(user)
    if (only !== undefined) return { reason: 'only_upstream', detail: only }
    if (hasFormerPassword(user) && canAskFormer?.() !== true) return { reason: 'former_unavailable' }
    return await readHeld({ kind: 'account', name: user.id, holder: user }, 'password_locked') ?? await findLimited(user)
  }

  async function findRefusal (user: UserRecord, id: string, held: readonly HeldWay[], client_id?: string): Promise<Refusal | undefined> {
    const existing = held.find((one) => one.id === id)
    if (existing === undefined) return { reason: 'method_lost' }
    const { kind, upstream } = existing.way
    const fallen = findFallen({ way: id, kind }, { ways: { [id]: existing.way } }, policy, client_id)
    if (fallen !== undefined) return defined({ reason: fallen, detail: upstream })
    if (kind === 'upstream') {
      const only = policy.findOnly(user)
      return only === undefined || only === upstream ? undefined : { reason: 'only_upstream', detail: only }
    }
    if (kind === 'recovery' && countCodes(held) === 0) return { reason: 'method_lost' }
    if (kind === 'passkey') return undefined
    const target: Target = kind === 'totp' ? { kind: 'factor', name: id } : toCodesTarget(user.id)
    return await readHeld(target, 'factor_locked') ?? await findLimited(user)
  }

  return async function listMethods (user: UserRecord, client_id?: string): Promise<Method[]> {
    const held = await ways.list(user)
    const methods: Method[] = []
    const named = async (refusal: Promise<Refusal | undefined>, id: string): Promise<Refusal | undefined> => {
      const found = await refusal
      return found && { ...found, method: id }
    }
    if (user.password || hasFormerPassword(user)) {
      methods.push(defined({ id: PASSWORD, kind: 'password' as const, why: await named(findPasswordRefusal(user), PASSWORD) }))
    }
    for (const id of Object.keys(user.ways ?? {})) {
      const existing = held.find((one) => one.id === id)
      const { kind, at, uv, rk } = existing?.way ?? findWay(user, id) ?? {}
      if (kind === undefined) continue
      const { name, last_used_at } = existing?.credential ?? {}
      methods.push(defined({ id, kind, uv, rk, name, created_at: at, last_used_at, why: await named(findRefusal(user, id, held, client_id), id) }))
    }
    return methods
  }
}

export type ListMethods = ReturnType<typeof createMethods>
