import type { FastifyInstance } from 'fastify'
import { IdentityError } from '../lib/errors.ts'
import type { GuardOptions } from './admission.ts'
import { type Admit, type Guard, toGuard } from './auth.ts'
import { allowOrigin } from './cors.ts'

declare module './auth.ts' {
  interface Identity {
    /**
     * Protects a host's routes as a resource of its own. It serves the resource's metadata (RFC 9728), and creates a hook like
     * `guard` with the resource as the audience, whose challenges tell clients where the metadata are. Call it before the
     * app is ready, once for each set of scopes. A handler may await the hook: `await write(request)`.
     * @example
     * const onRequest = app.identity.protect({ resource: 'https://api.example.com/orders', scopes: ['orders:read'] })
     * app.get('/orders', { onRequest }, handler)
     * @throws Error for a resource whose metadata cannot be served, and without an issuer to name
     */
    protect (options: ProtectOptions): Guard
  }
}

export interface ProtectOptions extends Omit<GuardOptions, 'audience'> {
  /** The URL of the resource: the `id` that it is declared with. */
  resource: string
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/** Characters with no special meaning in a route or a URL. */
const PLAIN_PATH = /^[\w.~/-]*$/

/** The URL of a resource's metadata: the well-known path comes before the path of the resource (RFC 9728, 3.1). */
function locateMetadata (resource: string): URL {
  const url = URL.parse(resource)
  if (url === null || !/^https?:$/.test(url.protocol)) throw new Error('protect: the resource must be an http or https URL')
  if (url.search !== '' || url.hash !== '' || !PLAIN_PATH.test(url.pathname)) {
    throw new Error("protect: the resource must have a path of letters, digits, '/', '-', '.', '_' and '~', and no query or fragment")
  }
  return new URL(WELL_KNOWN + (url.pathname === '/' ? '' : url.pathname), url)
}

/** Adds the metadata's URL to a challenge (RFC 9728, 5.1), and the scopes, for a client that has no token yet. */
function addToChallenge (error: unknown, url: URL, scopes: readonly string[]): unknown {
  if (!(error instanceof IdentityError)) return error
  const challenge = error.headers['www-authenticate']
  if (challenge === undefined) return error
  const parameters = [`resource_metadata="${url.href}"`]
  if (scopes.length > 0 && !challenge.includes('scope=')) parameters.push(`scope="${scopes.join(' ')}"`)
  const { code, message, statusCode, headers } = error
  const full = `${challenge}${challenge.includes('=') ? ',' : ''} ${parameters.join(', ')}`
  return new IdentityError(code, message, { statusCode, headers: { ...headers, 'www-authenticate': full } })
}

/**
 * Creates `Identity.protect`.
 * @param app serves the metadata
 * @param getIssuer the authorization server that the metadata name; absent where there is none
 */
export function createProtect (
  app: FastifyInstance, admitBy: (rule: GuardOptions) => Admit, getIssuer: (() => string) | undefined
): (options: ProtectOptions) => Guard {
  /** Resources by the path of their metadata, with all scopes that their routes need. */
  const served = new Map<string, { resource: string, scopes: Set<string> }>()

  function serve (url: URL, resource: string, scopes: readonly string[]): void {
    const known = served.get(url.pathname)
    if (known !== undefined && known.resource !== resource) throw new Error(`protect: the metadata of two resources would be at ${url.pathname}`)
    if (known !== undefined) {
      for (const scope of scopes) known.scopes.add(scope)
      return
    }
    const all = new Set(scopes)
    served.set(url.pathname, { resource, scopes: all })
    app.get(url.pathname, { schema: { hide: true } }, (request, reply) => {
      allowOrigin(request, reply)
      return reply.send({
        resource,
        authorization_servers: [getIssuer!()],
        scopes_supported: [...all].sort(),
        bearer_methods_supported: ['header']
      })
    })
  }

  return ({ resource, ...rule }) => {
    const { scopes = [] } = rule
    if (getIssuer === undefined) throw new Error('protect: there is no authorization server that the metadata could name')
    if (app.prefix !== '') {
      throw new Error(`protect: the metadata cannot be served at the root of the host, because the plugin is registered under ${app.prefix}`)
    }
    const url = locateMetadata(resource)
    serve(url, resource, scopes)
    const admit = admitBy({ ...rule, audience: resource })
    const refuse = (error: unknown): never => { throw addToChallenge(error, url, scopes) }
    return toGuard((request) => {
      try {
        const caller = admit(request)
        return caller instanceof Promise ? caller.catch(refuse) : caller
      } catch (error) {
        return refuse(error)
      }
    })
  }
}
