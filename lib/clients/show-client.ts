import type { Client, ClientItem } from '../../schemas/client.ts'
import type { Complete } from '../../schemas/common.ts'
import type { ClientRecord } from '../records.ts'
import { isVouchedFor } from './kinds.ts'

/** A caller's view of clients. It is plain data, because lists are rendered in another thread. */
export interface ClientView {
  /** Whether the owner is shown. */
  isAdmin: boolean
  /** Whose secrets are shown. */
  secrets: 'all' | 'own' | 'none'
  user_id: string
  /** The fields of a list's items; absent: all. */
  fields?: readonly string[] | undefined
}

/** Returns a function that shows a client as a caller may see it. */
export function showClientTo ({ isAdmin, secrets, user_id }: ClientView, open: (sealed: string, id: string) => string) {
  return function showClient (record: ClientRecord): Complete<Client> {
    const isShown = secrets === 'all' || (secrets === 'own' && record.userId === user_id && !isVouchedFor(record))
    return {
      clientId: record.id,
      createdAt: record.createdAt,
      modifiedAt: record.modifiedAt,
      clientSecret: record.secret !== undefined && isShown ? open(record.secret, record.id) : undefined,
      redirectUris: record.redirectUris,
      scopes: record.scopes,
      userId: isAdmin ? record.userId : undefined,
      name: record.name,
      image: record.image,
      confidential: record.secret !== undefined && !isShown ? true : undefined,
      grants: record.grants,
      pkce: record.pkce,
      first_party: record.first_party,
      roles: record.roles,
      disabled: record.disabled_at === undefined ? undefined : true,
      id_token_claims: record.id_token_claims,
      backchannelLogoutUri: record.backchannelLogoutUri
    }
  }
}

/** The same for a list, which may select fields. Secrets that are not selected stay sealed. */
export function showClientItemTo (view: ClientView, open: (sealed: string, id: string) => string): (record: ClientRecord) => ClientItem {
  const { fields } = view
  if (fields === undefined) return showClientTo(view, open)
  const show = showClientTo(view, fields.includes('clientSecret') ? open : () => '')
  return (record) => {
    const client: Record<string, unknown> = show(record)
    return Object.fromEntries(fields.map((field) => [field, client[field]])) as ClientItem
  }
}
