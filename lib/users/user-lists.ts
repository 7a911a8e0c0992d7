import type { UserCountQuery, UserItem, UserListQuery } from '../../schemas/user.ts'
import type { Page } from '../lists/cursor.ts'
import { createLists } from '../lists/lists.ts'
import type { UserRecord } from '../records.ts'
import type { Actor } from '../roles.ts'
import type { Filter, Store } from '../store/port.ts'
import { toUpstreamFilter } from '../way.ts'
import { showItemOf } from './show-user.ts'

const SORT_KEYS = { account: 'account', created: 'created_at', modified: 'modified_at', verified: 'verified_at', name: 'name' }

/** `account` takes precedence over `contains`. Empty means absent. Accounts are stored lower-cased. */
function toFilter ({ account, contains, factor, upstream }: UserCountQuery): Filter {
  const equal = { ...(account && { account: account.toLowerCase() }), ...(factor === 'any' && { has_factor: true }) }
  const identities = upstream ? toUpstreamFilter(upstream) : undefined
  const part = { ...(!account && contains && { account: contains.toLowerCase() }), ...identities?.contains }
  return {
    ...(Object.keys(equal).length > 0 && { equal }),
    ...(Object.keys(part).length > 0 && { contains: part }),
    ...(identities && { since: identities.since }),
    ...(factor === 'none' && { absent: ['has_factor'] })
  }
}

/** Lists of users. */
export function createUserLists (store: Store) {
  const lists = createLists<UserRecord>(store, 'users', SORT_KEYS, 'account:asc')
  return {
    async count (query: UserCountQuery = {}, actor?: Actor): Promise<number> {
      return await lists.count(toFilter(query), actor)
    },

    list (query: UserListQuery = {}): AsyncIterable<UserItem[]> {
      return lists.list(toFilter(query), query, showItemOf(query.fields))
    },

    async page (query: UserListQuery = {}, actor?: Actor): Promise<Page<UserItem>> {
      const { fields } = query
      return await lists.page(toFilter(query), query, showItemOf(fields), { fields }, actor)
    }
  }
}
