import type { Client, ClientItem } from '../../schemas/client.ts'
import type { Complete } from '../../schemas/common.ts'
import { DOCUMENT_PREFIX, toDocumentHost } from '../client-documents/ids.ts'
import { type ClientRecord, type TokenAuth, isVouchedFor } from '../records/client.ts'
import { checkMatch, toTag } from '../match.ts'
import type { Actor } from '../roles.ts'
import { showKeys } from './client-keys.ts'
import { isOwnedBy } from './owner.ts'
import { isConfidential } from './token-auth.ts'

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

/** Whether a caller with this view may see the readable secret of a client. */
export function maySeeSecret ({ secrets, user_id }: Pick<ClientView, 'secrets' | 'user_id'>, record: ClientRecord): boolean {
  return secrets === 'all' || (secrets === 'own' && isOwnedBy(record, user_id) && !isVouchedFor(record))
}

/** Whether a client must authenticate, as it is shown: with its readable secret, or marked as confidential without one. */
export function isShownConfidential ({ clientSecret, confidential }: Pick<Client, 'clientSecret' | 'confidential'>): boolean {
  return clientSecret !== undefined || confidential === true
}

/** How a client authenticates, as it is shown. */
export function findShownTokenAuth (client: Pick<Client, 'tokenAuth' | 'clientSecret' | 'confidential'>): TokenAuth {
  return client.tokenAuth ?? (isShownConfidential(client) ? 'secret' : 'none')
}

/** Returns a function that shows a client as a caller may see it. */
export function showClientTo (view: ClientView, open: (sealed: string, id: string) => string) {
  return function showClient (record: ClientRecord): Complete<Client> {
    const { former_auth: previous } = record
    const isShown = maySeeSecret(view, record)
    return {
      clientId: record.id,
      createdAt: record.createdAt,
      modifiedAt: record.modifiedAt,
      clientSecret: record.secret !== undefined && isShown ? open(record.secret, record.id) : undefined,
      redirectUris: record.redirectUris,
      scopes: record.scopes,
      userId: view.isAdmin ? record.userId : undefined,
      name: record.name,
      image: record.image,
      confidential: isConfidential(record) && !(record.secret !== undefined && isShown) ? true : undefined,
      tokenAuth: record.tokenAuth,
      jwks: record.keys && showKeys(record.keys),
      former: previous && { tokenAuth: previous.method, until: previous.until },
      grants: record.grants,
      pkce: record.pkce,
      first_party: record.first_party,
      profile: record.profile,
      roles: record.roles,
      disabled: record.disabled_at === undefined ? undefined : true,
      idTokenAlg: record.idTokenAlg,
      signedRequests: record.signedRequests,
      id_token_claims: record.id_token_claims,
      claims: record.claims,
      backchannelLogoutUri: record.backchannelLogoutUri,
      document: record.document && { id: DOCUMENT_PREFIX + record.document.id, host: toDocumentHost(record.id), used_at: record.document.used_at }
    }
  }
}

/** The fields of a client that its entity tag covers: those of a patch. */
const MATCHED = [
  'name', 'redirectUris', 'scopes', 'image', 'tokenAuth', 'jwks', 'grants', 'pkce', 'first_party', 'profile', 'roles', 'disabled', 'idTokenAlg',
  'signedRequests', 'id_token_claims', 'claims', 'backchannelLogoutUri'
] as const satisfies (keyof Client)[]

/** The entity tag of a client, for `If-Match`. */
export const toClientTag = (client: Client): string => toTag(client, MATCHED)

/** Refuses a patch of fields that have changed since the caller read them. @throws ErrParam with 412 */
export function checkClientMatch (ifMatch: string | undefined, record: ClientRecord, data: object = {}): void {
  if (ifMatch === undefined) return
  const shown = showClientTo({ isAdmin: true, secrets: 'none', user_id: '' }, () => '')(record)
  checkMatch(ifMatch, shown, MATCHED.filter((field) => Object.hasOwn(data, field)))
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

/** The view of clients that the actor gets. Secrets require the scopes for changes, because a secret allows using the client. */
export function toView ({ user_id, isUser = true, isAdmin, isPersonal = false, holds = () => true }: Actor): ClientView {
  const own = isUser ? 'own' : 'none'
  const secrets = isPersonal || !holds('clients:write') ? 'none' : isAdmin && holds('users:write') ? 'all' : own
  return { isAdmin, secrets, user_id }
}
