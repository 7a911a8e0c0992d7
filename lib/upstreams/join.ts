import type { UserRecord } from '../records.ts'
import type { RoleNames } from '../roles.ts'
import type { WayService } from '../ways/ways.ts'
import type { WayPolicy } from '../ways/words.ts'
import { UpstreamError } from './failure.ts'
import type { Owner } from './identities.ts'
import { mayLinkByItself } from './link-rule.ts'
import type { Linking, Proven } from './linking.ts'

interface JoinParts {
  now: () => number
  roles: RoleNames
  ways: Pick<WayService, 'hasFactor'>
  findOnly: WayPolicy['findOnly']
  link: Linking['link']
}

/** Creates the function that decides what becomes of an identity whose proved address an account has. */
export function createJoin ({ now, roles, ways, findOnly, link }: JoinParts) {
  return async function join (proven: Proven, holder: UserRecord): Promise<Owner> {
    const { upstream, claimed } = proven
    if (upstream.link === 'never') throw new UpstreamError('taken')
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
    return { confirm: { user_id: holder.id, account: holder.account } }
  }
}
