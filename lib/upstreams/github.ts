import { hash } from 'node:crypto'
import type { Upstream } from '../../schemas/upstream.ts'
import { defined } from '../defined.ts'
import type { Calls } from './calls.ts'
import { findScope, findServer } from './kinds.ts'
import type { Enter } from './places.ts'
import type { Authorization, Callback, Claims, Provider } from './provider.ts'
import { readSecret } from './secret.ts'

const PUBLIC = findServer({ kind: 'github' })

const AGENT = { 'user-agent': 'fastify-identity' }
const FORM = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json', ...AGENT }

interface Address { email?: unknown, primary?: unknown, verified?: unknown }

/** Signs people in with GitHub, which speaks OAuth 2 and has no ID tokens. */
export function createGithub (upstream: Upstream, calls: Calls): Provider {
  const server = findServer(upstream)
  const api = server === PUBLIC ? 'https://api.github.com' : `${server}/api/v3`

  /** Reads from the API. Null when it has nothing for this token, or too many requests were made. */
  async function get (path: string, token: string, enter: Enter): Promise<unknown> {
    const headers = { accept: 'application/vnd.github+json', authorization: `Bearer ${token}`, ...AGENT }
    const response = await calls.call(enter)(`${api}${path}`, { headers })
    return response.status === 200 ? await response.json() : null
  }

  async function redeem (code: string, verifier: string, redirectUri: string, enter: Enter): Promise<string> {
    const body = new URLSearchParams({
      client_id: upstream.clientId, client_secret: await readSecret(upstream), code, redirect_uri: redirectUri, code_verifier: verifier
    })
    const response = await calls.call(enter)(`${server}/login/oauth/access_token`, { method: 'POST', headers: FORM, body })
    const { access_token: token, error } = await response.json() as { access_token?: unknown, error?: unknown }
    // Its errors come with the status 200.
    if (typeof token !== 'string') throw new Error(`no token: ${typeof error === 'string' ? error.slice(0, 64) : response.status}`)
    return token
  }

  return {
    async check (enter) {
      const { status } = await calls.call(enter)(`${api}/zen`, { headers: AGENT })
      if (status >= 500) throw new Error(`status ${status}`)
    },

    async toAuthorization ({ redirectUri, state, verifier, hint, isFresh, asksAccount }: Authorization) {
      return `${server}/login/oauth/authorize?${new URLSearchParams(defined({
        client_id: upstream.clientId,
        redirect_uri: redirectUri,
        response_type: 'code',
        scope: findScope(upstream),
        state,
        code_challenge: hash('sha256', verifier, 'base64url'),
        code_challenge_method: 'S256',
        login: hint,
        prompt: isFresh || asksAccount === true ? 'select_account' : undefined
      }))}`
    },

    async redeem ({ url, state, verifier }: Callback, enter): Promise<Claims> {
      const { searchParams: params } = url
      const [code, ...more] = params.getAll('code')
      const issuers = params.getAll('iss')
      const isOfServer = issuers.every((iss) => iss === server || iss === `${server}/login/oauth`)
      if (params.get('state') !== state || code === undefined || more.length > 0 || !isOfServer) {
        throw new Error('not an answer of this server with a code')
      }
      const token = await redeem(code, verifier, `${url.origin}${url.pathname}`, enter)
      const user = await get('/user', token, enter) as { id?: unknown, name?: unknown } | null
      if (user === null || !Number.isSafeInteger(user.id)) throw new Error('the user has no numeric id')
      // What /user says of an address is what the person shows to others. An unreachable list is no address.
      const found = await get('/user/emails', token, enter)
      const addresses: Address[] = Array.isArray(found) ? found : []
      const primary = addresses.find((one) => one.primary === true && one.verified === true)
      return { iss: server, sub: String(user.id), name: user.name, email: primary?.email, email_verified: primary !== undefined }
    }
  }
}
