import type { KoaContextWithOIDC, errors as OidcErrors } from 'oidc-provider'
import { type SignatureHeader, listCandidates } from '../crypto/public-keys.ts'
import type { ClientKey, ClientRecord } from '../records/client.ts'
import type { UserRecord } from '../records/user.ts'
import { type ClientAuthentication, describeRefusal, readHeader } from './client-authentication.ts'
import { authenticateCaller, findAuthId, findCaller, noteSpent, rememberClient } from './context.ts'
import { OAuthError, toProviderError } from './oauth-error.ts'

interface CallerParts {
  authentication: Pick<ClientAuthentication, 'verify' | 'verifyRequest'>
  issuer: string
  errors: typeof OidcErrors
  getContext: () => KoaContextWithOIDC | undefined
}

/** The signed request of a context, at an endpoint that takes one. */
function readRequest ({ oidc, query }: KoaContextWithOIDC): unknown {
  return oidc.params?.request ?? oidc.body?.request ?? query?.request
}

/** Judges what the requests of oidc-provider present of their clients, before it verifies a signature itself. */
export function createCallers ({ authentication, issuer, errors, getContext }: CallerParts) {
  /** Throws our errors as oidc-provider sends them. */
  async function explain<T> (ctx: KoaContextWithOIDC | undefined, work: Promise<T>): Promise<T> {
    return await work.catch((error: unknown) => { throw error instanceof OAuthError ? toProviderError(error, errors, ctx) : error })
  }

  const toSender = (ctx: KoaContextWithOIDC | undefined) => ({ issuer, address: ctx?.ip ?? '' })

  /** The key that has signed the assertion of the request; undefined without one. @throws invalid_client, and 429 temporarily_unavailable */
  async function authenticate (ctx: KoaContextWithOIDC, record: ClientRecord): Promise<ClientKey | undefined> {
    const assertion: unknown = ctx.oidc.params?.client_assertion
    if (typeof assertion !== 'string') return undefined
    const presented = { method: 'private_key_jwt', assertion } as const
    const isAuthentic = findAuthId(ctx) !== undefined || await authenticateCaller(
      ctx, record.id, async (client) => await authentication.verify(client, presented, toSender(ctx))
    )
    if (!isAuthentic) throw new OAuthError(401, 'invalid_client', describeRefusal(presented))
    return record.keys?.find(({ id }) => id === findAuthId(ctx))
  }

  return {
    /**
     * Notes the client that a request names, and authenticates it if there is an assertion.
     * @returns the keys that may have signed what the request has of the client
     */
    async present (record: ClientRecord, owner: UserRecord | null): Promise<{ isAsserted: boolean, keys: ClientKey[] }> {
      const ctx = getContext()
      rememberClient(ctx, record, owner)
      if (ctx?.oidc === undefined) return { isAsserted: false, keys: [] }
      try {
        const signer = await explain(ctx, authenticate(ctx, record))
        const request = readRequest(ctx)
        const candidates = typeof request === 'string' ? listCandidates(record.keys ?? [], readHeader(request)) : []
        return { isAsserted: signer !== undefined, keys: [...new Set([...signer === undefined ? [] : [signer], ...candidates])] }
      } catch (error) {
        // oidc-provider would look for the client once more.
        Object.assign(ctx.oidc, { noclient: true })
        throw error
      }
    },

    /** Whether the text is a secret of the client that the current request names. */
    async isSecret (client_id: string, secret: string): Promise<boolean> {
      const ctx = getContext()
      return await explain(ctx, authenticateCaller(ctx, client_id, async (client) =>
        await authentication.verify(client, { method: 'secret', secret }, toSender(ctx))))
    },

    /** Whether the assertion with this `jti` has authenticated the client of the request. */
    isAssertion (ctx: KoaContextWithOIDC, client_id: string, jti: string): boolean {
      const isAuthentic = findCaller(ctx)?.record.id === client_id && findAuthId(ctx) !== undefined
      if (isAuthentic) noteSpent(ctx, jti)
      return isAuthentic
    },

    /** Whether the client has signed the request. @throws 429 temporarily_unavailable */
    async isRequest (ctx: KoaContextWithOIDC, client_id: string, request: string, header: SignatureHeader): Promise<boolean> {
      const record = findCaller(ctx)?.record
      return record?.id === client_id && await explain(ctx, authentication.verifyRequest(record, request, header, ctx.ip))
    }
  }
}

export type Callers = ReturnType<typeof createCallers>
