import { DocumentError } from '../client-documents/error.ts'
import type { Purpose } from '../client-documents/index.ts'
import { toMetadata } from './clients.ts'
import { readKid } from './client-authentication.ts'
import { OAuthError, toProviderError } from './oauth-error.ts'
import type { AdapterParts, Payload } from './model-adapter.ts'

/** What a client is looked up for, by the route of oidc-provider. Absent: outside of one, for a page of a sign-in. */
function toPurpose (route: string | undefined): Purpose {
  if (route === 'authorization' || route === 'pushed_authorization_request') return 'authorize'
  return route === undefined || route === 'resume' ? 'resume' : 'redeem'
}

/** The client of a document: in an authorization with its present content, elsewhere with that to which people have consented. */
export async function findDocumentClient ({ documents, readRegistry, errors, callers, getContext }: AdapterParts, id: string): Promise<Payload | undefined> {
  if (documents === undefined) return undefined
  const ctx = getContext()
  const purpose = toPurpose(ctx?.oidc?.route)
  let found
  try {
    const signed = ctx?.oidc?.params?.client_assertion ?? ctx?.oidc?.params?.request
    found = await (await documents.load()).find(id, purpose, { address: ctx?.ip, kid: typeof signed === 'string' ? readKid(signed) : undefined })
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error
    const { retryAfter, detail, summary } = error
    // oidc-provider would look for the client once more.
    if (ctx?.oidc !== undefined) Object.assign(ctx.oidc, { noclient: true })
    const refused = retryAfter === undefined
      ? new OAuthError(400, 'invalid_client', summary)
      : new OAuthError(503, 'temporarily_unavailable', detail, { 'retry-after': String(retryAfter) })
    throw toProviderError(refused, errors, ctx)
  }
  if (found === null) return undefined
  return toMetadata(found.client, await readRegistry(), { isAccepted: found.accepted, ...await callers.present(found.client, null) })
}
