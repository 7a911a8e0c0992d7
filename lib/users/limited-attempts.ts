import { LRUCache } from 'lru-cache'
import { LIMITS } from '../../schemas/common.ts'
import type { Base } from '../base.ts'
import { countCharacters } from '../checks.ts'
import type { Failures } from '../events/failures.ts'
import { findOrigin } from '../events/origin.ts'
import { hashToken } from '../crypto/random-token.ts'
import type { UserRecord } from '../records/user.ts'
import type { Collection } from '../store/port.ts'
import type { KnownBrowser } from '../throttling/known-browsers.ts'
import { groupNetwork } from '../throttling/networks.ts'
import { PASSWORD } from '../way.ts'
import { findByName } from './addresses.ts'

/** Milliseconds for which it is known whose a name is: as long as a limit lasts. */
const KEPT = 60_000

/** The most such names, and the most look-ups at once. A network has one at a time. */
const MOST = 10_000
const AT_ONCE = 20

type Holder = Pick<UserRecord, 'id' | 'epoch'> | null

interface LimitedParts extends Pick<Base, 'now'> {
  users: Collection<UserRecord>
  failures: Pick<Failures, 'recordSignIn' | 'defer'>
}

/**
 * Records attempts at passwords that a limit a minute has refused. Whose name was typed is looked up after the response, and at most once a minute
 * and name. What a flood leaves no time to look up counts as an unknown account.
 */
export function createLimitedAttempts ({ users, failures, now }: LimitedParts) {
  const holders = new LRUCache<string, { holder: Holder, until: number }>({ max: MOST })
  const looking = new Set<string>()

  /** @returns undefined where others are looked up now */
  async function findHolder (name: string): Promise<Holder | undefined> {
    const key = hashToken(name)
    const kept = holders.get(key)
    if (kept !== undefined && kept.until > now()) return kept.holder
    const network = groupNetwork(findOrigin()?.address ?? '')
    if (looking.size >= AT_ONCE || looking.has(network)) return undefined
    looking.add(network)
    try {
      const found = await findByName(users, name)
      const holder = found && { id: found.id, epoch: found.epoch }
      holders.set(key, { holder, until: now() + KEPT })
      return holder
    } finally {
      looking.delete(network)
    }
  }

  /** @param known the entry of the browser's cookie for the name */
  return function recordLimited (typed: string, known?: KnownBrowser): void {
    if (typed === '' || countCharacters(typed) > LIMITS.account) return
    const name = typed.toLowerCase()
    failures.defer(async () => {
      const holder = await findHolder(name)
      const isKnown = known !== undefined && known.user_id === holder?.id && known.epoch === holder.epoch
      failures.recordSignIn(holder === undefined ? known?.user_id : holder?.id, name, { reason: 'limited', method: { kind: PASSWORD, id: PASSWORD }, isKnown })
    })
  }
}
