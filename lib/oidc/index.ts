import type { IncomingMessage } from 'node:http'
import type { Clock } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import type { Store } from '../store/port.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { createIntrospection } from './introspection.ts'
import { createKeys } from './keys.ts'
import type { OidcSettings } from './configuration.ts'
import type { Engine } from './provider.ts'
import { createTimes } from './model-adapter.ts'

/** Milliseconds between two looks at the keys: as long as a running service may take to notice a rotation. */
const LOOK = 15_000

export interface EngineOptions {
  issuer: URL
  /** The path before `/api/v1`, as the app sees it. */
  prefix: string
  settings: OidcSettings
  onError (error: unknown, request: IncomingMessage): void
}

/**
 * The authorization server's parts that live with the services.
 * @param ticks milliseconds of a clock that nobody sets
 */
export function createOidc ({ store, tokens, box, now, ticks = () => performance.now() }: {
  store: Store, tokens: Tokens, box: SecretBox, now: Clock, ticks?: () => number
}) {
  const keys = createKeys({ store, box, now })
  const times = createTimes(now)

  return {
    /** Makes a new signing key, see lib/oidc/keys.ts. Running services notice it within 15 seconds. */
    rotateKeys: keys.rotate,

    /** Answers introspection requests, see introspection.ts. */
    createIntrospection: (settings: Pick<OidcSettings, 'refreshGrace'>) => createIntrospection({ store, tokens, box, times, ...settings }),

    /**
     * Gives an engine, always the one of the keys that count: the store is asked again when the last look is LOOK ago.
     * A store that does not answer then leaves the engine as it was.
     */
    createSource (options: EngineOptions): () => Promise<Engine> {
      let current: { engine: Engine, version: string } | undefined
      let looked = -Infinity
      let looking: Promise<void> | undefined

      async function look (): Promise<void> {
        const ring = await keys.load()
        if (current?.version !== ring.version) {
          // Loaded, with oidc-provider, when the first one is built: those who never sign anyone in never pay for it.
          const { buildEngine } = await import('./provider.ts')
          current = { engine: await buildEngine({ ...options, store, tokens, box, times, keys: ring }), version: ring.version }
        }
        looked = ticks()
      }

      return async function getEngine () {
        if (current === undefined || ticks() - looked > LOOK) {
          looking ??= look().finally(() => { looking = undefined })
          await looking.catch((error) => {
            if (current === undefined) throw error
            looked = ticks()
          })
        }
        return (current as { engine: Engine }).engine
      }
    }
  }
}

export type Oidc = ReturnType<typeof createOidc>
export type { Engine } from './provider.ts'
