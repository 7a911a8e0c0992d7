import { hash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What the provider says of whoever signs in there. Every claim of an ID token may be set. */
export interface UpstreamClaims {
  sub?: string
  email?: string | null
  email_verified?: unknown
  name?: string
  [claim: string]: unknown
}

/** An OpenID provider for tests, in this process. It signs everybody in at once, and never asks. */
export interface TestUpstream {
  /** Its issuer identifier, a URL on 127.0.0.1. */
  readonly issuer: string
  /** Sets what it says of whoever signs in next. */
  (claims: UpstreamClaims): void
  /** The paths that were called, with their method. */
  readonly calls: readonly string[]
  /** Signs with a new key from now on. @param isTold false: its key set stays as it was */
  rotate (isTold?: boolean): void
  /**
   * A logout token that it signs now, about a session (`sid`) or a person (`sub`), for `POST /api/v1/auth/upstream/ID/backchannel-logout`. A claim that is
   * undefined is left out.
   */
  logoutToken (claims: Record<string, unknown>, header?: Record<string, unknown>): string
  /** Answers a request in another way: the function returns true if it has. Null: as a provider should. */
  answer: ((request: IncomingMessage, response: ServerResponse) => boolean) | null
  /** Whether a client secret is right. */
  checkSecret: (secret: string) => boolean
  /** Stops listening. */
  close (): Promise<void>
}

/** The client id and the secret that it knows. */
export const TEST_CLIENT = { clientId: 'fastify-identity', clientSecret: 'a secret of a test' } as const

interface Key { kid: string, privateKey: KeyObject, jwk: object }

function createKey (): Key {
  const kid = randomBytes(8).toString('hex')
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { kid, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg: 'ES256', use: 'sig' } }
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

async function readBody (request: IncomingMessage): Promise<URLSearchParams> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return new URLSearchParams(Buffer.concat(parts).toString())
}

/** Starts the provider on a free port of 127.0.0.1. */
export async function createTestUpstream (): Promise<TestUpstream> {
  const codes = new Map<string, { params: URLSearchParams, claims: UpstreamClaims }>()
  const calls: string[] = []
  let claims: UpstreamClaims = { sub: 'somebody' }
  let key = createKey()
  let keys = [key.jwk]

  function send (response: ServerResponse, body: object, status = 200): void {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }

  function signToken (payload: object, header: object = {}): string {
    const input = `${encode({ alg: 'ES256', kid: key.kid, ...header })}.${encode(payload)}`
    return `${input}.${sign('sha256', Buffer.from(input), { key: key.privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
  }

  function redeem (body: URLSearchParams): object | null {
    const code = body.get('code') ?? ''
    const known = codes.get(code)
    codes.delete(code)
    const isRight = body.get('client_id') === TEST_CLIENT.clientId && upstream.checkSecret(body.get('client_secret') ?? '') &&
      body.get('redirect_uri') === known?.params.get('redirect_uri') && hash(
      'sha256', body.get('code_verifier') ?? '', 'base64url'
    ) === known?.params.get('code_challenge')
    if (known === undefined || !isRight) return null
    const iat = Math.floor(Date.now() / 1000)
    const payload = { iss: issuer, aud: TEST_CLIENT.clientId, iat, exp: iat + 300, nonce: known.params.get('nonce'), ...known.claims }
    return { access_token: randomBytes(16).toString('hex'), token_type: 'Bearer', expires_in: 300, id_token: signToken(payload) }
  }

  async function serve (request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url!, issuer)
    calls.push(`${request.method} ${pathname}`)
    if (upstream.answer?.(request, response) === true) return
    if (pathname === '/.well-known/openid-configuration') {
      return send(response, {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/keys`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['ES256'],
        authorization_response_iss_parameter_supported: true,
        code_challenge_methods_supported: ['S256']
      })
    }
    if (pathname === '/keys') return send(response, { keys })
    if (pathname === '/token') {
      const answer = redeem(await readBody(request))
      return answer === null ? send(response, { error: 'invalid_grant' }, 400) : send(response, answer)
    }
    if (pathname !== '/authorize') return send(response, {}, 404)
    const code = randomBytes(16).toString('hex')
    codes.set(code, { params: searchParams, claims })
    const back = new URLSearchParams({ code, state: searchParams.get('state') ?? '', iss: issuer })
    response.writeHead(303, { location: `${searchParams.get('redirect_uri')}?${back}` }).end()
  }

  const server = createServer((request, response) => { serve(request, response).catch(() => response.destroy()) })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const upstream: TestUpstream = Object.assign((next: UpstreamClaims) => { claims = { sub: 'somebody', ...next } }, {
    issuer,
    calls,
    answer: null as TestUpstream['answer'],
    checkSecret: (secret: string) => secret === TEST_CLIENT.clientSecret,
    logoutToken (claims: Record<string, unknown>, header: Record<string, unknown> = { typ: 'logout+jwt' }) {
      const iat = Math.floor(Date.now() / 1000)
      return signToken({
        iss: issuer,
        aud: TEST_CLIENT.clientId,
        iat,
        exp: iat + 120,
        jti: randomBytes(16).toString('hex'),
        events: {
          'http://schemas.openid.net/event/backchannel-logout': {}
        },
        ...claims
      }, header)
    },
    rotate (isTold = true) {
      key = createKey()
      if (isTold) keys = [key.jwk]
    },
    async close () {
      server.close()
      server.closeAllConnections()
    }
  })
  return upstream
}
