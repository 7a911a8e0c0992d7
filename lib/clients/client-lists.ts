import type { Client, ClientCountQuery, ClientItem, ClientListQuery } from '../../schemas/client.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import type { Page } from '../lists/cursor.ts'
import { type Counted, createLists, withSearch } from '../lists/lists.ts'
import type { ClientRecord } from '../records/client.ts'
import type { Actor } from '../roles.ts'
import type { Filter, Store } from '../store/port.ts'
import { parseClientFields } from './columns.ts'
import { filterOwned } from './owner.ts'
import { showClientItemTo, showClientTo, toView } from './show-client.ts'

const SORT_KEYS = { created: 'createdAt', modified: 'modifiedAt', name: 'name' }

/** An admin may filter by owner. Other callers see only their own clients. */
function toOwned (user: string | undefined, actor: Actor): Filter {
  if (!actor.isAdmin) return filterOwned(actor.user_id)
  return user ? { equal: { userId: user } } : {}
}

/** @throws ErrParam for an invalid search */
function toFilter ({ user, contains, search, sort }: ClientCountQuery & { sort?: string }, actor: Actor): Filter {
  return withSearch({ ...toOwned(user, actor), ...(contains && { contains: { name: contains } }) }, search, { contains, sort })
}

/** Lists of the clients that a caller may see. */
export function createClientLists (store: Store, box: SecretBox) {
  const lists = createLists<ClientRecord>(store, 'clients', SORT_KEYS, 'name:asc')
  return {
    async count (user: string | undefined, actor: Actor): Promise<number> {
      return await lists.count(toFilter({ user }, actor), actor)
    },

    /** The clients that a query finds, up to `max`, if it is given. */
    async countUpTo ({ max, ...query }: ClientCountQuery, actor: Actor): Promise<Counted> {
      return max === undefined ? { count: await lists.count(toFilter(query, actor), actor) } : await lists.countUpTo(toFilter(query, actor), max, actor)
    },

    /** Clients as this caller may see them. */
    list (query: Omit<ClientListQuery, 'fields'>, actor: Actor): AsyncIterable<Client[]> {
      return lists.list(toFilter(query, actor), query, showClientTo(toView(actor), box.open))
    },

    /**
     * A page with the fields that the query selects.
     * @throws ErrParam also for an unknown field
     */
    async page (query: ClientListQuery, actor: Actor): Promise<Page<ClientItem>> {
      const view = { ...toView(actor), fields: parseClientFields(query.fields) }
      return await lists.page(toFilter(query, actor), query, showClientItemTo(view, box.open), view, actor)
    }
  }
}
