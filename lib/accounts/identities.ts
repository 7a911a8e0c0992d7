import type { Happening } from '../events/types.ts'
import type { UserRecord } from '../records/user.ts'
import type { MaybePromise } from '../store/port.ts'
import { findWay } from '../way.ts'
import type { NewWay } from '../ways/credentials.ts'
import { showIdentity } from '../ways/identity.ts'
import type { More } from '../ways/way-changes.ts'
import { WayError } from '../ways/way-error.ts'
import type { WayActor } from '../ways/ways.ts'
import type { AccountContext } from './context.ts'
import { ENDED_BY_EPOCH } from '../tickets/tickets.ts'

/** An identity at an upstream, as a way. */
export type NewIdentity = NewWay & { kind: 'upstream', upstream: string, key: string }

/** The id of the way that a link has added to an account. */
export function findLinked ({ id, ways = {} }: UserRecord, { key }: Pick<NewIdentity, 'key'>): string {
  const found = Object.entries(ways).find(([, way]) => way.key === key)
  if (found === undefined) throw new Error(`the user ${id} has not got the identity that was linked`)
  return found[0]
}

/** What is written together with a link. */
export type LinkChange = Omit<More, 'notices' | 'happened'> & {
  happened?: readonly Happening[]
  /** The mail that tells of it. `identity-joined`: what was there before has gone. `identity-rejoined`: the identity before has. */
  notice?: 'identity-joined' | 'identity-rejoined' | undefined
}

export interface LinkOptions {
  /** Checks a rule on the record that the write replaces, and may throw. It returns what else is written. */
  decide?: (record: UserRecord) => MaybePromise<LinkChange | undefined>
}

/** Links identities at other providers to accounts, and unlinks them. A mail tells the person of each new identity, and lets them undo it. */
export function createIdentityLinks (context: AccountContext) {
  const { requireUser, tickets, ways, notices, undos, onError } = context

  return {
    /**
     * Links an identity to an account.
     * @param name of the upstream, for the mail
     * @throws WayError `in_use` where it is another account's, `most`; ErrUnknown when the session that asks has ended; ErrLimit
     */
    async linkIdentity (
      actor: WayActor, identity: NewIdentity, name: string, { decide = () => undefined }: LinkOptions = {}
    ): Promise<UserRecord> {
      const added = await ways.prepare(actor, [identity])
      let before = 0
      const written = await ways.name(actor, added, async (record) => {
        before = record.epoch
        const { happened = [], notice: mail = 'identity-linked', also, ...more } = await decide(record) ?? {}
        // Something else than a session asks where nothing was proved in one.
        const { set, unset, notices } = await undos.write(record, {
          kind: 'identity',
          added,
          mail,
          plain: 'identity-connected',
          values: { upstream: name },
          isAsked: actor.proofs !== undefined,
          isFirst: mail === 'identity-joined'
        })
        return {
          ...more,
          also: { ...also, set: { ...also?.set, ...set }, unset: [...also?.unset ?? [], ...unset] },
          happened: [{ type: 'identity.linked', id: record.id, via: showIdentity(identity) }, ...happened],
          notices
        }
      })
      if (written.epoch !== before) await tickets.removeOf(written.id, ENDED_BY_EPOCH).catch(onError)
      return written
    },

    /**
     * Unlinks an identity.
     * @throws WayError `last` unless a way in remains, `unknown`; ErrUnknown when the session that asks has ended
     */
    async unlinkIdentity (actor: WayActor, id: string, { isEnd = true }: { isEnd?: boolean } = {}): Promise<UserRecord> {
      const user = await requireUser(actor.user_id)
      const way = findWay(user, id)
      if (way?.kind !== 'upstream') throw new WayError('unknown')
      return await ways.remove(actor, id, {
        isEnd,
        toRecorded: async (record) => ({
          happened: [{ type: 'identity.unlinked', id: user.id, via: showIdentity(way) }],
          notices: await notices.write('identity-unlinked', record)
        })
      })
    }
  }
}

export type IdentityLinks = ReturnType<typeof createIdentityLinks>
