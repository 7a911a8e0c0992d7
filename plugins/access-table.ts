import type { AccessRule } from '../schemas/options.ts'
import type { ApiScope } from '../lib/api-scopes.ts'

/** A row of the access table. An override replaces the rule, never the scope. */
export interface AccessRow extends AccessRule {
  /** The scope of the API that the token must grant; null where any token will do, whatever its audience. */
  scope: ApiScope | null
  /** The operation itself decides when it needs a token. The rule applies then. */
  sometimes?: true
}

const any = (scope: ApiScope | null): AccessRow => ({ any: true, scope })
const admin = (scope: ApiScope): AccessRow => ({ roles: ['admin'], scope })
/** About people with none of the special roles: lib/users/people.ts. The role of support staff exists only where the option names it. */
const staff = (scope: ApiScope): AccessRow => ({ roles: ['admin', 'manager', 'support'], scope })

const rows = {
  createClient: any('clients:write'),
  countClients: any('clients:read'),
  listClients: any('clients:read'),
  getClient: any('clients:read'),
  patchClient: any('clients:write'),
  addClientSecret: any('clients:write'),
  listClientSecrets: any('clients:write'),
  removeClientSecret: any('clients:write'),
  createClientToken: { roles: ['admin'], scope: 'clients:write' },
  listClientTokens: { roles: ['admin'], scope: 'clients:write' },
  removeClientToken: { roles: ['admin'], scope: 'clients:write' },
  deleteClient: any('clients:write'),
  deleteClientsOfUser: { roles: ['admin'], owner: true, scope: 'clients:write' },
  listDocuments: admin('users:read'),
  blockDocument: admin('users:write'),
  refreshDocument: admin('users:write'),
  getTokenInfo: any(null),
  logout: any(null),
  listSessions: any('account:read'),
  endSessions: any('account:write'),
  getProfile: any('account:read'),
  patchProfile: any('account:write'),
  sendVerification: any('account:security'),
  changeAddress: any('account:security'),
  verifyAddress: { ...any('account:security'), sometimes: true },
  deleteProfile: any('account:security'),
  exportOwnData: any('account:security'),
  listFactors: any('account:security'),
  removeFactor: any('account:security'),
  resetFactors: admin('users:write'),
  listIdentities: any('account:security'),
  removeIdentity: any('account:security'),
  listIdentitiesOfUser: admin('users:read'),
  getIdentityOfUser: admin('users:read'),
  removeIdentityOfUser: admin('users:write'),
  replaceIdentityOfUser: admin('users:write'),
  importUsers: admin('users:write'),
  inviteUser: { roles: ['admin', 'manager'], scope: 'users:write' },
  releaseAddress: admin('users:write'),
  recoverUser: staff('users:support'),
  unlockUser: staff('users:support'),
  listSessionsOfUser: staff('users:read'),
  endSessionsOfUser: staff('users:support'),
  endSessionOfUser: staff('users:support'),
  listFactorsOfUser: staff('users:read'),
  listMailsOfUser: staff('users:read'),
  listJobs: admin('users:read'),
  retryJobs: admin('users:write'),
  listKeys: admin('users:read'),
  createResource: admin('users:write'),
  countResources: admin('users:write'),
  listResources: admin('users:write'),
  getResource: admin('users:write'),
  patchResource: admin('users:write'),
  deleteResource: admin('users:write'),
  listEvents: admin('events:read'),
  readEvents: admin('events:read'),
  createWebhook: admin('webhooks:write'),
  countWebhooks: admin('webhooks:write'),
  listWebhooks: admin('webhooks:write'),
  getWebhook: admin('webhooks:write'),
  patchWebhook: admin('webhooks:write'),
  deleteWebhook: admin('webhooks:write'),
  listWebhookAttempts: admin('webhooks:write'),
  replayWebhook: admin('webhooks:write'),
  testWebhook: admin('webhooks:write'),
  rotateWebhookSecret: admin('webhooks:write'),
  explainSignIn: staff('users:read'),
  findAccount: staff('users:read'),
  previewToken: admin('users:read'),
  createUser: admin('users:write'),
  countUsers: admin('users:read'),
  listUsers: admin('users:read'),
  getUser: staff('users:read'),
  patchUser: { roles: ['admin', 'manager', 'service'], scope: 'users:write' },
  deleteUser: admin('users:write')
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
