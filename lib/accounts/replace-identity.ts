import { paramError } from '../errors.ts'
import { toRecorded } from '../events/types.ts'
import type { ExpectedIdentity } from '../records/user.ts'
import { userNotFound } from '../user-changes/user-changes.ts'
import { showIdentity } from '../ways/identity.ts'
import type { WayActor } from '../ways/ways.ts'
import type { AccountContext } from './context.ts'
import { ENDED_BY_EPOCH } from '../tickets/tickets.ts'

/** Lets another identity take the place of the one that a user has at an upstream. */
export function createIdentityReplacement (context: AccountContext) {
  const { tickets, ways, notices, onError } = context
  return {
    /**
     * The same person has another subject at an upstream now. Their identities there go, and this one may join by itself, as the only one of
     * the upstream. All sessions end, and a mail tells the person.
     * @param name of the upstream, for the mail
     * @throws ErrNotFound, ErrParam for an identity that the user has
     */
    async replaceIdentity ({ user_id, confirm }: WayActor, expected: ExpectedIdentity, name: string): Promise<void> {
      await ways.change(user_id, async (found) => {
        await confirm?.(found)
        const record = await ways.withIssuers(found)
        const held = Object.entries(record.ways ?? {}).filter(([, { kind, upstream }]) => kind === 'upstream' && upstream === expected.upstream)
        const shown = held.map(([, way]) => showIdentity(way))
        if (shown.some(({ subject }) => subject === expected.subject)) throw paramError('subject', 'is an identity of the user already')
        const others = record.expected_identities?.filter(({ upstream }) => upstream !== expected.upstream) ?? []
        return {
          remove: held.map(([id]) => id),
          isEnd: true,
          also: { set: { expected_identities: [...others, expected] } },
          ...toRecorded(
            [...shown.map((via) => ({ type: 'identity.unlinked' as const, id: user_id, via })), { type: 'identity.replaced', id: user_id, via: expected }],
            await notices.write('identity-replaced', found, { values: { upstream: name } })
          )
        }
      }, userNotFound)
      await tickets.removeOf(user_id, ENDED_BY_EPOCH).catch(onError)
    }
  }
}
