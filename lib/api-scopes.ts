/** The scopes of the service's own API, with their descriptions for the consent page. */
export const API_SCOPES = {
  'account:read': 'read your profile and see where you are signed in',
  'account:write': 'change your profile and sign you out elsewhere',
  'account:security': 'change how you sign in to your account',
  'clients:read': 'see the apps you registered',
  'clients:write': 'register, change and remove your apps, and read their secrets',
  'users:read': 'read all users, and their apps and sessions, as far as your roles allow',
  'users:write': 'change and remove users, and their apps and sessions, as far as your roles allow',
  'events:read': 'read the event log of all accounts and apps',
  'webhooks:write': 'send events about all accounts and apps to web addresses of its choice, and see the deliveries'
} as const

export type ApiScope = keyof typeof API_SCOPES

/** The stored resource id of a token for this service's own API. It is shorter than any generated id. */
export const API_RESOURCE_ID = 'api'

/** Scopes that every client may request. They are in no client's record, and no resource can declare them. */
export const COMMON_SCOPES: ReadonlySet<string> = new Set(['openid', 'profile', 'email', 'roles', 'offline_access'])

/** Names that later releases may give a meaning. A client that had one of them before keeps it as a free scope. */
export const RESERVED_SCOPES: ReadonlySet<string> = new Set(['groups', 'organization', 'org', 'address', 'phone', 'device_sso', 'openid_credential'])

/** API scopes that only an administrator may give to a client. */
export const ADMIN_SCOPES: ReadonlySet<string> = new Set<ApiScope>(['account:security', 'users:read', 'users:write', 'events:read', 'webhooks:write'])

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

/** Whether these scopes include the needed one. Write includes read. */
export function includesScope (granted: readonly string[], needed: ApiScope): boolean {
  return granted.includes(needed) || (needed.endsWith(':read') && granted.includes(needed.replace(/read$/, 'write')))
}
