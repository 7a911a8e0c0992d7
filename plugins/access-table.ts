import type { AccessRule } from '../schemas/options.ts'
import type { ApiScope } from '../lib/api-scopes.ts'

/** A row of the access table. An override replaces the rule, never the scope. */
export interface AccessRow extends AccessRule {
  /** The scope of the API that the token must grant; null where any token will do, whatever its audience. */
  scope: ApiScope | null
  /** The operation itself decides when it needs a token. The rule applies then. */
  sometimes?: true
  /** Whether a personal access token may call it. */
  personal: Personal
}

/**
 * What a personal access token may call. `no`: it makes or shows a credential of anybody, gives a role, changes how somebody signs in, ends
 * their sessions, deletes or disables them, or exports their data. `plain`: it may, without these fields of the body, and the response has no
 * credential.
 */
export type Personal = 'yes' | 'no' | { readonly plain: readonly string[] }

const plain = (...fields: string[]): Personal => ({ plain: fields })
const any = (scope: ApiScope | null, personal: Personal): AccessRow => ({ any: true, scope, personal })
const admin = (scope: ApiScope, personal: Personal): AccessRow => ({ roles: ['admin'], scope, personal })
/** About people with none of the special roles: lib/users/people.ts. The role of support staff exists only where the option names it. */
const staff = (scope: ApiScope, personal: Personal): AccessRow => ({ roles: ['admin', 'manager', 'support'], scope, personal })

const rows = {
  createClient: any('clients:write', plain('credentials', 'data.jwks', 'data.tokenAuth', 'data.roles', 'data.first_party')),
  countClients: any('clients:read', 'yes'),
  listClients: any('clients:read', plain()),
  getClient: any('clients:read', plain()),
  patchClient: any('clients:write', plain('regen_secret', 'take_over', 'data.jwks', 'data.tokenAuth', 'data.former', 'data.roles', 'data.first_party')),
  addClientSecret: any('clients:write', 'no'),
  listClientSecrets: any('clients:write', 'yes'),
  removeClientSecret: any('clients:write', 'no'),
  createClientToken: { roles: ['admin'], scope: 'clients:write', personal: 'no' },
  listClientTokens: { roles: ['admin'], scope: 'clients:write', personal: 'no' },
  removeClientToken: { roles: ['admin'], scope: 'clients:write', personal: 'no' },
  deleteClient: any('clients:write', 'yes'),
  deleteClientsOfUser: { roles: ['admin'], owner: true, scope: 'clients:write', personal: 'no' },
  listDocuments: admin('users:read', 'yes'),
  blockDocument: admin('users:write', 'yes'),
  refreshDocument: admin('users:write', 'yes'),
  getTokenInfo: any(null, 'yes'),
  logout: any(null, 'yes'),
  listSessions: any('account:read', 'yes'),
  endSessions: any('account:write', 'no'),
  getProfile: any('account:read', 'yes'),
  patchProfile: any('account:write', plain('data.password', 'regen_secrets')),
  sendVerification: any('account:security', 'no'),
  changeAddress: any('account:security', 'no'),
  verifyAddress: { ...any('account:security', 'no'), sometimes: true },
  deleteProfile: any('account:security', 'no'),
  createPersonalToken: any('account:security', 'no'),
  listPersonalTokens: any('account:security', 'no'),
  removePersonalToken: any('account:security', 'no'),
  listPersonalTokensOfUser: admin('users:read', 'no'),
  removePersonalTokenOfUser: admin('users:write', 'no'),
  exportOwnData: any('account:security', 'no'),
  listFactors: any('account:security', 'no'),
  removeFactor: any('account:security', 'no'),
  resetFactors: admin('users:write', 'no'),
  listIdentities: any('account:security', 'no'),
  removeIdentity: any('account:security', 'no'),
  listIdentitiesOfUser: admin('users:read', 'yes'),
  getIdentityOfUser: admin('users:read', 'yes'),
  removeIdentityOfUser: admin('users:write', 'no'),
  replaceIdentityOfUser: admin('users:write', 'no'),
  importUsers: admin('users:write', 'no'),
  inviteUser: { roles: ['admin', 'manager'], scope: 'users:write', personal: 'no' },
  releaseAddress: admin('users:write', 'no'),
  recoverUser: staff('users:support', 'no'),
  unlockUser: staff('users:support', 'no'),
  listSessionsOfUser: staff('users:read', 'yes'),
  endSessionsOfUser: staff('users:support', 'no'),
  endSessionOfUser: staff('users:support', 'no'),
  listFactorsOfUser: staff('users:read', 'yes'),
  listMailsOfUser: staff('users:read', 'yes'),
  listJobs: admin('users:read', 'yes'),
  retryJobs: admin('users:write', 'yes'),
  listKeys: admin('users:read', 'yes'),
  getStatus: admin('users:read', 'yes'),
  listSettings: admin('users:read', 'yes'),
  sendTestMail: admin('users:write', 'no'),
  createResource: admin('users:write', 'yes'),
  countResources: admin('users:write', 'yes'),
  listResources: admin('users:write', 'yes'),
  getResource: admin('users:write', 'yes'),
  patchResource: admin('users:write', 'yes'),
  deleteResource: admin('users:write', 'yes'),
  listEvents: admin('events:read', 'yes'),
  readEvents: admin('events:read', 'yes'),
  createWebhook: admin('webhooks:write', 'no'),
  countWebhooks: admin('webhooks:write', 'yes'),
  listWebhooks: admin('webhooks:write', 'yes'),
  getWebhook: admin('webhooks:write', 'yes'),
  patchWebhook: admin('webhooks:write', plain('data.url')),
  deleteWebhook: admin('webhooks:write', 'yes'),
  listWebhookAttempts: admin('webhooks:write', 'yes'),
  replayWebhook: admin('webhooks:write', 'yes'),
  testWebhook: admin('webhooks:write', 'yes'),
  rotateWebhookSecret: admin('webhooks:write', 'no'),
  explainSignIn: staff('users:read', 'yes'),
  findAccount: staff('users:read', 'yes'),
  find: staff('users:read', 'yes'),
  previewToken: admin('users:read', 'yes'),
  createUser: admin('users:write', 'no'),
  countUsers: admin('users:read', 'yes'),
  listUsers: admin('users:read', 'yes'),
  getUser: staff('users:read', 'yes'),
  patchUser: {
    roles: ['admin', 'manager', 'service'],
    scope: 'users:write',
    personal: plain('data.password', 'data.roles', 'data.email', 'data.email_verified', 'disable')
  },
  deleteUser: admin('users:write', 'no')
} satisfies Record<string, AccessRow>

/** An operation with a row. */
export type Operation = keyof typeof rows

/** An operation that anybody may call. */
export type PublicOperation = 'forgotPassword' | 'resetPassword' | 'signUp' | 'undoAddressChange'

/**
 * The access table: who may call which operation, and with which scope. A row lists roles by key; the option `roles` sets their
 * names. The option `access` overrides rules. Rules within an operation, such as who may grant a role, are in lib/users/users.ts.
 */
export const ACCESS: Readonly<Record<string, AccessRow>> = rows
