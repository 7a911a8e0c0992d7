import type { Options } from '../schemas/options.ts'
import { bootstrap, type BootstrapOptions, type Bootstrapped } from './bootstrap.ts'
import { createClients, type Clients } from './clients/clients.ts'
import { createClientQuota } from './clients/quota.ts'
import { toApiUri } from './issuer.ts'
import type { Clock } from './clock.ts'
import { createPasswords } from './users/passwords.ts'
import { createPasswordRules } from './users/password-rules.ts'
import { createOidc, type Oidc } from './oidc/index.ts'
import { registerRenderers } from './renderers.ts'
import { createResources, type Resources } from './resources/resources.ts'
import { type RoleNames, checkRoleNames } from './roles.ts'
import { deriveKey } from './crypto/derive-key.ts'
import { createSecretBox } from './crypto/secrets.ts'
import { type Sealing, createSealing } from './crypto/reseal.ts'
import { checkSecretKeys, isSealed } from './crypto/seal.ts'
import { resolveSecretKeys } from './crypto/secret-key.ts'
import { createTokenSessions, type TokenSessions } from './tokens/token-sessions.ts'
import { type SignIns, createSignIns } from './sign-in/sign-ins.ts'
import { createPasswordStep } from './sign-in/steps/password.ts'
import { createAttempts } from './sign-in/attempts.ts'
import { createKnownBrowsers, type KnownBrowsers } from './sign-in/known-browsers.ts'
import { COLLECTIONS } from './store/collections.ts'
import { openStore } from './store/index.ts'
import type { Store } from './store/port.ts'
import { createTokens, type Tokens } from './tokens/tokens.ts'
import { checkManagerRoles } from './users/manager-rules.ts'
import { createUsers, type Users } from './users/users.ts'

/** The options of the services; `schemas/options.ts` describes those that are plain data. */
export interface ServiceOptions extends Pick<
  Options,
  'database' | 'storeTimeout' | 'secretKey' | 'dataDir' | 'production' | 'createDatabase' | 'bcryptCost' | 'hashQueue' | 'passwordMin' | 'roles' | 'managerRoles' | 'clientsPerUser'
> {
  walLimit?: Options['walLimit'] | undefined
  /** Resources that the host declares. Absent: the ones from earlier starts stay declared. */
  resources?: Options['resources'] | undefined
  /** The issuer, where it is known: below it is the service's own API, which no declared resource may be. */
  issuer?: string | undefined
  /** The name of the service, if it has one: nobody's password. */
  serviceName?: string | undefined
  /** An open store, which is left open. Absent: one is opened from `database`, and closed with the services. */
  store?: Store | undefined
  /** Only looks whether the services can be opened with these keys, and records nothing about them. */
  dryRun?: boolean | undefined
  /** Milliseconds since the epoch. */
  now?: Clock | undefined
  /** Processes on this machine, including this one. Each takes an equal part of the cores for hashing. */
  processes?: number | undefined
  /** Lifetime of minted refresh tokens in seconds. Absent: none are minted, because no authorization server redeems them. */
  refreshTtl?: number | undefined
  /** Receives failures that no caller waits for. */
  onError?: ((error: unknown) => void) | undefined
  /** Receives what an operator should know at once, such as that a new database was made. */
  onWarning?: ((message: string) => void) | undefined
}

/** The services over one store. The HTTP routes do nothing that a program cannot do through them. */
export interface Services {
  readonly store: Store
  readonly roles: RoleNames
  readonly users: Users
  readonly clients: Clients
  readonly tokens: Tokens
  /** Declared resources: what the scopes of other APIs mean. */
  readonly resources: Resources
  /** Lists and ends a user's token sessions. */
  readonly tokenSessions: TokenSessions
  /** Signs people in by steps, for the pages. */
  readonly signIns: SignIns
  /** The cookies of browsers in which somebody has signed in. */
  readonly knownBrowsers: KnownBrowsers
  /** The authorization server; `oidc.rotateKeys()` is for the command line. */
  readonly oidc: Oidc
  /** Everything that is sealed under the secret key, for the command line. */
  readonly sealing: Sealing
  /** Creates the first admin (lib/bootstrap.ts). */
  bootstrap (options?: BootstrapOptions): Promise<Bootstrapped>
  /** Finishes the accepted work, then closes what openServices opened. */
  close (): Promise<void>
}

/**
 * Opens the services.
 * @throws Error for a wrong option, a store that cannot be opened, and a missing or wrong secret key
 */
export async function openServices (options: ServiceOptions): Promise<Services> {
  const { roles, managerRoles, now = Date.now, onError = () => {}, onWarning = () => {}, processes = 1 } = options
  checkRoleNames(roles)
  checkManagerRoles(roles, managerRoles)
  const { store: handedIn, createDatabase: create = !options.production } = options
  const storeOptions = { collections: COLLECTIONS, now, onError, onWarning, create, timeout: options.storeTimeout, ...(options.walLimit !== undefined && { walLimit: options.walLimit }) }
  /** Opens a store of our own for this question only: it is asked once, before the key file exists. */
  async function isOpenedBefore (): Promise<boolean> {
    const store = handedIn ?? await openStore(options.database, storeOptions)
    try {
      return await isSealed(store)
    } finally {
      if (handedIn === undefined) await store.close()
    }
  }
  const box = createSecretBox(...await resolveSecretKeys(options, isOpenedBefore, onWarning))
  const store = handedIn ?? await openStore(options.database, { ...storeOptions, renderers: registerRenderers(box.keys) })
  const passwords = createPasswords({ cost: options.bcryptCost, queue: options.hashQueue, processes })
  const tokens = createTokens({ store, now, roles, onError, refreshTtl: options.refreshTtl })
  async function close () {
    try {
      await passwords.close()
      await tokens.close()
    } finally {
      if (handedIn === undefined) await store.close()
    }
  }
  const resources = createResources({ store, now, onError, ...(options.issuer !== undefined && { api: toApiUri(new URL(options.issuer)) }) })
  try {
    await checkSecretKeys(store, box.keyIds, options, options.dryRun)
    await resources.ensure()
    if (options.resources !== undefined) await resources.declareFixed(options.resources)
  } catch (error) {
    await close()
    throw error
  }
  const checkNewPassword = createPasswordRules({ min: options.passwordMin, serviceName: options.serviceName })
  const attempts = createAttempts({ store, now, key: deriveKey(box.key, 'attempts') })
  const users = createUsers({ store, now, roles, managerRoles, passwords, checkNewPassword, attempts, tokens, onError })
  const checkQuota = createClientQuota(store.collection('clients'), options.clientsPerUser)
  const clients = createClients({ store, now, box, tokens, checkQuota })
  return {
    store,
    roles,
    users,
    clients,
    tokens,
    resources,
    tokenSessions: createTokenSessions({ store, now, tokens }),
    signIns: createSignIns({ store, now, steps: [createPasswordStep(users)] }),
    knownBrowsers: createKnownBrowsers({ key: deriveKey(box.key, 'known browsers'), now }),
    oidc: createOidc({ store, tokens, box, now }),
    sealing: createSealing({ store, box }),
    bootstrap: (asked) => bootstrap({ store, users, clients, tokens, roles, now }, asked),
    close
  }
}
