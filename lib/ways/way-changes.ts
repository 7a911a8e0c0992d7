import { withMore } from '../change-record.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import type { Recorded } from '../events/types.ts'
import type { UserChange, UserRecord } from '../records/user.ts'
import type { MaybePromise } from '../store/port.ts'
import type { UserChanges } from '../user-changes/user-changes.ts'
import { type CredentialRecord, MOST_WAYS, PASSWORD, type Way, type Ways, findWay } from '../way.ts'
import { type Credentials, isInUse } from './credentials.ts'
import type { ExistingWays } from './existing-ways.ts'
import { WayError } from './way-error.ts'
import { toWayFields, withoutWays } from './words.ts'

interface WayFields {
  /** Material to name. */
  add?: readonly CredentialRecord[]
  /** Ways to remove; `password` too. */
  remove?: readonly string[]
  /** Whether tokens and sessions end. */
  isEnd?: boolean
  /** Further changes. Never of `addresses`: a store may not be able to say which of two unique fields has clashed. */
  also?: UserChange
}

/** A change of the ways of a user, decided on their record, with the events that are recorded with it, and the mails about it. */
export type WayChange = WayFields & Recorded

/** What is written together with the name of a way. */
export type More = Pick<WayFields, 'also' | 'remove' | 'isEnd'> & Recorded

export interface WayChangeParts {
  now: Clock
  changes: Pick<UserChanges, 'changeUser'>
  credentials: Pick<Credentials, 'remove' | 'sweep'>
  withIssuers: ExistingWays['withIssuers']
  /** @throws WayError `off` for a way of a kind that nobody may add */
  checkMayAdd: (way: Pick<Way, 'kind'>) => void
  /** Receives failures that no caller waits for. */
  onError: (error: unknown) => void
}

/** Creates the function that makes a change of a user's ways, by one conditional write of their record. */
export function createWayChanges ({ now, changes, credentials, withIssuers, checkMayAdd, onError }: WayChangeParts) {
  /** @param record with the issuers of its identities */
  function toFields (record: UserRecord, { add = [], remove = [], also = {} }: WayFields): UserChange {
    const kept = withoutWays(record, remove)
    const ways: Ways = { ...kept.ways }
    for (const { id, way } of add) {
      checkMayAdd(way)
      // The store compares the keys of different users only.
      if (way.key !== undefined && Object.values(ways).some(({ key }) => key === way.key)) throw new WayError('in_use')
      ways[id] = { ...way, at: toTimestamp(now()) }
      if (Object.values(ways).filter(({ kind }) => kind === way.kind).length > MOST_WAYS[way.kind]) throw new WayError('most')
    }
    const fields = toWayFields(ways, record)
    const unset = [...also.unset ?? [], ...fields.unset, ...(remove.includes(PASSWORD) ? ['password'] as const : [])]
    return { ...also, set: { ...also.set, ...fields.set }, unset }
  }

  /**
   * After a concurrent write it decides again; an error from `decide` ends it.
   * @param notFound the error where there is no such user
   * @throws WayError, ErrBusy
   */
  return async function change (
    user_id: string, decide: (record: UserRecord) => MaybePromise<WayChange>, notFound: () => Error = () => new WayError('unknown')
  ): Promise<UserRecord> {
    let former: string[] = []
    const written = await changes.changeUser(user_id, async (record) => {
      const decision = await decide(record)
      const { set, unset, increment } = toFields(await withIssuers(record), decision)
      former = Object.keys(record.ways ?? {})
      // Also by what is written with it, as by a link that is completed: that records no end of its own.
      const isEnded = decision.isEnd === true || increment?.epoch !== undefined
      return {
        set,
        unset,
        increment: { ...increment, ...(isEnded && { epoch: 1 }) },
        ...withMore(decision, decision.isEnd === true ? [{ type: 'user.sessions_ended', id: user_id }] : [])
      }
    }, { notFound }).catch((error: unknown) => { throw isInUse(error) ? new WayError('in_use', { cause: error }) : error })
    const removed = former.filter((id) => findWay(written, id) === undefined)
    await credentials.remove(removed).then(async () => await credentials.sweep(written)).catch(onError)
    return written
  }
}
