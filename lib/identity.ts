import type { Options } from '../schemas/options.ts'
import { bootstrap, type BootstrapOptions, type Bootstrapped } from './bootstrap.ts'
import { createClients, type Clients } from './clients/clients.ts'
import type { Clock } from './clock.ts'
import { createPasswords } from './users/passwords.ts'
import { createOidc, type Oidc } from './oidc/index.ts'
import { registerRenderers } from './renderers.ts'
import type { RoleNames } from './roles.ts'
import { createSecretBox } from './crypto/secrets.ts'
import { checkSecretKey, resolveSecretKey } from './crypto/secret-key.ts'
import { createSessions, type Sessions } from './tokens/sessions.ts'
import { COLLECTIONS } from './store/collections.ts'
import { openStore } from './store/index.ts'
import type { Store } from './store/port.ts'
import { createTokens, type Tokens } from './tokens/tokens.ts'
import { createUsers, type Users } from './users/users.ts'

/** What the services need; `schemas/options.ts` tells the meaning of each. */
export interface ServiceOptions extends Pick<Options, 'database' | 'storeTimeout' | 'staleness' | 'secretKey' | 'dataDir' | 'production' | 'bcryptCost' | 'hashQueue' | 'roles'> {
  /** An open store: used, and left open. Absent: one is opened from `database`, and closed with the services. */
  store?: Store | undefined
  /** Milliseconds since the epoch. */
  now?: Clock | undefined
  /** Processes that serve beside each other on this machine, this one included: hashing is shared among them. */
  processes?: number | undefined
  /** Told of failures that no caller waits for. */
  onError?: ((error: unknown) => void) | undefined
}

/** The services over one store. Everything the HTTP routes do, a program can do through these. */
export interface Services {
  readonly store: Store
  readonly roles: RoleNames
  readonly users: Users
  readonly clients: Clients
  readonly tokens: Tokens
  /** Token sessions: a user's list of them, and the end of all at once. */
  readonly sessions: Sessions
  /** The authorization server; `oidc.rotateKeys()` is for the operator's tools. */
  readonly oidc: Oidc
  /** Makes the first admin, see lib/bootstrap.ts. */
  bootstrap (options?: BootstrapOptions): Promise<Bootstrapped>
  /** Finishes what was accepted and closes what was opened here. */
  close (): Promise<void>
}

/**
 * Opens the services.
 * @throws Error when the store cannot be opened, or the secret key is missing or not the database's
 */
export async function openServices (options: ServiceOptions): Promise<Services> {
  const { roles, now = Date.now, onError = () => {}, processes = 1 } = options
  const key = await resolveSecretKey(options)
  const box = createSecretBox(key)
  const store = options.store ?? await openStore(options.database, {
    collections: COLLECTIONS, now, onError, timeout: options.storeTimeout, staleness: options.staleness, renderers: registerRenderers(box.key)
  })
  const passwords = createPasswords({ cost: options.bcryptCost, queue: options.hashQueue, processes })
  async function close () {
    try {
      await passwords.close()
    } finally {
      if (options.store === undefined) await store.close()
    }
  }
  try {
    await checkSecretKey(store, box.keyId)
  } catch (error) {
    await close()
    throw error
  }
  const tokens = createTokens({ store, now, roles, onError })
  const users = createUsers({ store, now, roles, passwords, tokens })
  const clients = createClients({ store, now, box, tokens })
  return {
    store,
    roles,
    users,
    clients,
    tokens,
    sessions: createSessions({ store, now, tokens, onError }),
    oidc: createOidc({ store, box, now }),
    bootstrap: (asked) => bootstrap({ store, users, clients, tokens, roles, now }, asked),
    close
  }
}
