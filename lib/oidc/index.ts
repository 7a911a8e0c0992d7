import type { IncomingMessage } from 'node:http'
import type { Base } from '../base.ts'
import type { Logos } from '../clients/logos.ts'
import type { CredentialUses } from '../tokens/uses.ts'
import type { LazyDocuments } from '../client-documents/index.ts'
import type { Look } from '../pages/look.ts'
import { ACRS, type Acr } from '../proofs.ts'
import type { ClientGrant } from '../records/client.ts'
import { type Counter, createCounter } from '../throttling/counter.ts'
import type { IdentityStanding } from '../upstreams/standing.ts'
import type { MaySignIn } from '../sign-in/may-sign-in.ts'
import type { Tokens } from '../tokens/tokens.ts'
import type { AddressMode } from '../events/address.ts'
import { createClientAuthentication } from './client-authentication.ts'
import { createIntrospection } from './introspection.ts'
import { createKeys } from './keys.ts'
import type { AuthorizationServer, OidcSettings, RefusedUri } from './contract.ts'
import { createTimes } from './model-adapter.ts'

/** Milliseconds between two checks of the keys: a running service notices a rotation within this time. */
const KEY_CHECK_INTERVAL = 15_000

interface ServerOptions {
  issuer: URL
  /** The path before `/api/v1`, as the app sees it. */
  prefix: string
  settings: OidcSettings
  /** How the pages look. */
  look: Look
  onError (error: unknown, request: IncomingMessage): void
  /** Receives a redirect URI that the client has not registered, without its query. */
  onRefusedUri?: ((refused: RefusedUri) => void) | undefined
}

interface OidcParts extends Base {
  tokens: Tokens
  maySignIn: MaySignIn
  /** The classes that a sign-in can reach. */
  acrs?: readonly Acr[]
  addresses: AddressMode
  uses: Pick<CredentialUses, 'note'>
  counter?: Counter
  onGrant?: ((grant: ClientGrant) => void) | undefined
  documents?: LazyDocuments | undefined
  logos?: Pick<Logos, 'find'> | undefined
  standing?: IdentityStanding | undefined
  /** Milliseconds of a monotonic clock. */
  uptime?: () => number
}

/** The parts of the authorization server that need no HTTP. */
export function createOidc ({ acrs = ACRS, uses, counter = createCounter(), uptime = () => performance.now(), ...parts }: OidcParts) {
  const { store, box, now, recorder, tokens, documents, standing } = parts
  const keys = createKeys({ store, box, now })
  const times = createTimes(now)
  const authentication = createClientAuthentication({ store, box, now, times, uses, counter, documents })

  return {
    /** Creates a new signing key, see lib/oidc/keys.ts. Running services notice it within 15 seconds. */
    async rotateKeys (options?: Parameters<typeof keys.rotate>[0]): ReturnType<typeof keys.rotate> {
      const rotated = await keys.rotate(options)
      await recorder.insert({ type: 'key.rotated', id: rotated.kid })
      return rotated
    },

    /** Answers introspection requests, see introspection.ts. */
    createIntrospection: (settings: Pick<OidcSettings, 'refreshGrace'>) => createIntrospection({ tokens, authentication, times, standing, ...settings }),

    /**
     * Returns a function that resolves to the authorization server with the current keys. It reads the keys again when the
     * last check is older than KEY_CHECK_INTERVAL. If that read fails, the server stays as it was.
     */
    createSource (options: ServerOptions): () => Promise<AuthorizationServer> {
      let current: { server: AuthorizationServer, version: string } | undefined
      let checkedAt = -Infinity
      let checking: Promise<void> | undefined

      async function checkKeys (): Promise<void> {
        const ring = await keys.load()
        if (current?.version !== ring.version) {
          // oidc-provider is loaded with the first server, so that an app without sign-ins does not pay for it.
          const { buildServer } = await import('./provider.ts')
          current = { server: await buildServer({ ...parts, ...options, acrs, authentication, times, counter, keys: ring }), version: ring.version }
        }
        checkedAt = uptime()
      }

      return async function getServer () {
        if (current === undefined || uptime() - checkedAt > KEY_CHECK_INTERVAL) {
          checking ??= checkKeys().finally(() => { checking = undefined })
          await checking.catch((error) => {
            if (current === undefined) throw error
            checkedAt = uptime()
          })
        }
        return (current as { server: AuthorizationServer }).server
      }
    }
  }
}

export type Oidc = ReturnType<typeof createOidc>
export type { AuthorizationServer } from './contract.ts'
