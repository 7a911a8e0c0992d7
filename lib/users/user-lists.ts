import type { UserCountQuery, UserItem, UserListQuery } from '../../schemas/user.ts'
import { defined } from '../defined.ts'
import type { Page } from '../lists/cursor.ts'
import { type Counted, createLists, withSearch } from '../lists/lists.ts'
import type { UserRecord } from '../records/user.ts'
import type { Actor } from '../roles.ts'
import type { Filter, Store } from '../store/port.ts'
import { toUpstreamFilter } from '../way.ts'
import { showItemOf } from './show-user.ts'

const SORT_KEYS = { account: 'account', created: 'created_at', modified: 'modified_at', verified: 'verified_at', name: 'name' }

const unlessEmpty = <T extends object>(fields: T): T | undefined => Object.keys(fields).length > 0 ? fields : undefined

/** `account` takes precedence over `contains`. Empty means absent. Accounts are stored lower-cased. @throws ErrParam for an invalid search */
function toFilter ({ account, contains, factor, upstream, search, sort }: UserCountQuery & { sort?: string }): Filter {
  const identities = upstream ? toUpstreamFilter(upstream) : undefined
  const part = account ? undefined : contains?.toLowerCase() || undefined
  return withSearch(defined({
    equal: unlessEmpty(defined({ account: account?.toLowerCase() || undefined, has_factor: factor === 'any' ? true : undefined })),
    contains: unlessEmpty(defined({ account: part, ...identities?.contains })),
    since: identities?.since,
    absent: factor === 'none' ? ['has_factor'] : undefined
  }), search, { account, contains, sort })
}

/** Lists of users. */
export function createUserLists (store: Store) {
  const lists = createLists<UserRecord>(store, 'users', SORT_KEYS, 'account:asc')
  return {
    async count (query: UserCountQuery = {}, actor?: Actor): Promise<number> {
      return await lists.count(toFilter(query), actor)
    },

    /** The same up to `max`, if it is given. */
    async countUpTo ({ max, ...query }: UserCountQuery, actor?: Actor): Promise<Counted> {
      return max === undefined ? { count: await lists.count(toFilter(query), actor) } : await lists.countUpTo(toFilter(query), max, actor)
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
