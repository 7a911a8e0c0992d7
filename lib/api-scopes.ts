/** The scopes of the service's own API, with their descriptions for the consent page. */
export const API_SCOPES = {
  'account:read': 'See your profile and where you are signed in',
  'account:write': 'Change your profile and sign you out elsewhere',
  'account:security': 'Change how you sign in to your account',
  'clients:read': 'See your developer apps',
  'clients:write': 'Register, change and delete your developer apps, and see their secrets',
  'users:read': 'See all users, their apps and their sessions, as far as your roles allow',
  'users:write': 'Change and delete users, their apps and their sessions, as far as your roles allow',
  'users:support': 'Unlock users, sign them out and send them links to set a new password, as far as your roles allow',
  'events:read': 'See the event log of all accounts and apps',
  'webhooks:write': 'Send events about all accounts and apps to web addresses it chooses, and see the deliveries'
} as const

export type ApiScope = keyof typeof API_SCOPES

/** The stored resource id of a token for this service's own API. It is shorter than any generated id. */
export const API_RESOURCE_ID = 'api'

/** Scopes that every client may request. They are in no client's record, and no resource can declare them. */
export const COMMON_SCOPES: ReadonlySet<string> = new Set(['openid', 'profile', 'email', 'roles', 'offline_access'])

/** Names that later releases may give a meaning. A client that had one of them before keeps it as a free scope. */
export const RESERVED_SCOPES: ReadonlySet<string> = new Set(['groups', 'organization', 'org', 'address', 'phone', 'device_sso', 'openid_credential'])

/** API scopes that only an administrator may give to a client. */
export const ADMIN_SCOPES: ReadonlySet<string> = new Set<ApiScope>([
  'account:security', 'users:read', 'users:write', 'users:support', 'events:read', 'webhooks:write'
])

export function isApiScope (scope: string): scope is ApiScope {
  return Object.hasOwn(API_SCOPES, scope)
}

/** Whether a client that acts for itself may have the scope. Such a client has no account. */
export function isForClients (scope: string): boolean {
  return !scope.startsWith('account:')
}

/** Whether the scope is only about the operator's data, so that using it requires a role. */
export function isForAdmins (scope: ApiScope): boolean {
  return scope.startsWith('events:') || scope.startsWith('webhooks:')
}

/** Whether the scope is only about what support staff do, so that using it requires a role. */
export const isForSupport = (scope: ApiScope): boolean => scope === 'users:support'

/** Whether no personal access token may have the scope: it would change how the person signs in, or means nothing without a sign-in. */
export const isNeverPersonal = (scope: string): boolean => scope === 'account:security' || (scope !== 'roles' && COMMON_SCOPES.has(scope))

/** Whether these scopes include the needed one. Write includes read, and what support staff do. */
export function includesScope (granted: readonly string[], needed: ApiScope): boolean {
  return granted.includes(needed) || (/:(read|support)$/.test(needed) && granted.includes(needed.replace(/(read|support)$/, 'write')))
}
