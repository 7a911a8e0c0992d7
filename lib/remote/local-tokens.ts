import { type JWTPayload, type JWTVerifyOptions, createRemoteJWKSet, customFetch, decodeJwt, errors, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import type { RemoteSettings } from '../../schemas/remote.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { hashToken } from '../crypto/random-token.ts'
import { defined } from '../defined.ts'
import { deepFreeze } from '../freeze.ts'
import { type RoleNames, holdsRole } from '../roles.ts'
import type { MaybePromise } from '../store/port.ts'
import { type StrengthClaims, readStrength } from '../tokens/strength.ts'
import { type Caller, invalidToken } from '../tokens/tokens.ts'
import { type TokenInfoClient, unavailable } from './token-info-client.ts'

/** Milliseconds between two requests for keys, when tokens name keys that are not known. */
const COOLDOWN = 60_000

/** Milliseconds after which the keys are read again. */
const KEYS_AGE = 10 * 60_000

interface LocalTokensOptions {
  issuer: string
  resources: NonNullable<RemoteSettings['jwtResources']>
  client: Pick<TokenInfoClient, 'readKeys'>
  timeout: number
  cacheSize: number
  roles: RoleNames
  /** The time by which tokens expire, in milliseconds since 1970. */
  now: Clock
}

/** The claims of an access token (RFC 9068, 2.2) that a caller is made of. */
type Claims = JWTPayload & StrengthClaims & { client_id?: unknown, scope?: unknown, roles?: unknown, cnf?: unknown }

/** Whether an error is about the token, and not about the keys. */
const isAboutToken = (error: unknown): boolean => error instanceof errors.JOSEError &&
  !(error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid || error.code === errors.JOSEError.code)

/** What an unverified token says of its audience; undefined for a token that is no JWT. */
function readAudience (token: string): unknown {
  // An opaque token has no dot.
  if (!token.includes('.')) return undefined
  try {
    return decodeJwt(token).aud
  } catch {
    return undefined
  }
}

/**
 * Verifies access tokens that are JWTs for the app's own resources, by the published keys of the service. It asks nobody, so the end of a
 * token's session counts only when the token expires.
 */
export class LocalTokens {
  readonly #options: LocalTokensOptions
  readonly #algorithms: ReadonlyMap<string, string>
  readonly #keys: ReturnType<typeof createRemoteJWKSet>
  readonly #callers: LRUCache<string, { caller: Caller, exp: number }>

  constructor (options: LocalTokensOptions) {
    this.#options = options
    this.#algorithms = new Map(options.resources.map(({ id, tokenAlg = 'RS256' }) => [id, tokenAlg]))
    this.#callers = new LRUCache({ max: options.cacheSize })
    // The metadata of the issuer name the URL of the keys, and the client reads both.
    this.#keys = createRemoteJWKSet(new URL(options.issuer), {
      cooldownDuration: COOLDOWN,
      cacheMaxAge: KEYS_AGE,
      timeoutDuration: options.timeout,
      [customFetch]: async () => new Response(await options.client.readKeys(), { headers: { 'content-type': 'application/json' } })
    })
  }

  /**
   * The caller of a JWT for one of the resources; undefined for any other token, about which the service is asked.
   * @throws ErrUnknown for one that is not valid, ErrRsc (503) when the keys cannot be read
   */
  authenticate (token: string): MaybePromise<Caller> | undefined {
    const id = hashToken(token)
    const cached = this.#callers.get(id)
    if (cached !== undefined) {
      if (cached.exp * 1000 > this.#options.now()) return cached.caller
      this.#callers.delete(id)
    }
    const audience = readAudience(token)
    const alg = typeof audience === 'string' ? this.#algorithms.get(audience) : undefined
    return alg === undefined ? undefined : this.#verify(id, token, { audience: audience as string, algorithms: [alg] })
  }

  async #verify (id: string, token: string, expected: JWTVerifyOptions): Promise<Caller> {
    const { issuer, now } = this.#options
    const options = { ...expected, issuer, typ: 'at+jwt', requiredClaims: ['exp', 'sub', 'client_id'], currentDate: new Date(now()) }
    const { payload, protectedHeader } = await jwtVerify<Claims>(token, this.#keys, options).catch((error: unknown) => {
      throw isAboutToken(error) ? invalidToken() : unavailable(error)
    })
    // jose also takes `application/at+jwt`, which this service never writes. With `cnf` the token is bound to a key (RFC 9449), and a bearer
    // token proves none.
    if (protectedHeader.typ !== 'at+jwt' || payload.cnf !== undefined) throw invalidToken()
    const caller = this.#toCaller(id, payload)
    this.#callers.set(id, { caller, exp: payload.exp as number })
    return caller
  }

  #toCaller (id: string, { sub = '', aud, client_id, scope = '', roles = [], exp = 0, acr, amr, auth_time }: Claims): Caller {
    const held = Object.fromEntries((roles as string[]).map((role) => [role, true as const]))
    const auth = readStrength(defined({ acr, amr, auth_time }))
    const isClient = sub === client_id
    return deepFreeze({
      subject: isClient ? 'client' as const : 'user' as const,
      // A token names neither the account nor the name, nor the owner of a client.
      user: { user_id: isClient ? '' : sub, account: '', name: '', roles: held },
      client: { clientId: String(client_id) },
      token: { id, scopes: String(scope).split(' ').filter(Boolean), audience: aud as string, expired_at: toTimestamp(exp * 1000) },
      ...(auth !== undefined && { auth }),
      isAdmin: holdsRole(held, this.#options.roles.admin)
    })
  }
}
