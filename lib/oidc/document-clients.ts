import { DocumentError } from '../documents/error.ts'
import type { Purpose } from '../documents/index.ts'
import { readRegistry } from '../resources/registry.ts'
import { toMetadata } from './clients.ts'
import { readKid } from './client-authentication.ts'
import { isAsserted, rememberClient } from './context.ts'
import type { AdapterParts, Payload } from './model-adapter.ts'

/** What a client is looked up for, by the route of oidc-provider. Absent: outside of one, for a page of a sign-in. */
function toPurpose (route: string | undefined): Purpose {
  if (route === 'authorization' || route === 'pushed_authorization_request') return 'authorize'
  return route === undefined || route === 'resume' ? 'resume' : 'redeem'
}

/** The client of a document: in an authorization with its present content, elsewhere with that to which people have consented. */
export async function findDocumentClient ({ documents, store, errors, getContext }: AdapterParts, id: string): Promise<Payload | undefined> {
  if (documents === undefined) return undefined
  const ctx = getContext()
  const purpose = toPurpose(ctx?.oidc?.route)
  try {
    const signed = ctx?.oidc?.params?.client_assertion ?? ctx?.oidc?.params?.request
    const found = await (await documents.load()).find(id, purpose, { address: ctx?.ip, kid: typeof signed === 'string' ? readKid(signed) : undefined })
    if (found === null) return undefined
    rememberClient(ctx, found.client)
    return toMetadata(found.client, await readRegistry(store), { isAccepted: found.accepted, isAsserted: isAsserted(ctx) })
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error
    const { retryAfter, detail } = error
    // oidc-provider would look for the client once more.
    if (ctx?.oidc !== undefined) Object.assign(ctx.oidc, { noclient: true })
    if (retryAfter === undefined) throw new errors.CustomOIDCProviderError('invalid_client', `the document of the client was refused: ${detail}`)
    ctx?.set('retry-after', String(retryAfter))
    throw Object.assign(new errors.TemporarilyUnavailable(detail), { status: 503, statusCode: 503 })
  }
}
