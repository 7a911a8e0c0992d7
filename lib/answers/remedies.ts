import type { Reason } from '../../schemas/reason.ts'

/** What opens something again: an operation of the API with the command that does the same, the person, or the operator's configuration. */
export type Opening =
  | { operation: string, command?: string }
  | { self: string }
  | { operator: true }

const RETRY = { operation: 'retryJobs', command: 'jobs retry --kind mail' }
/** Somebody has to choose what to change, so the command shows its help. */
const CLIENT = { operation: 'patchClient', command: 'client patch --help' }
const UNLOCK = { operation: 'unlockUser', command: 'user unlock {account}' }
const ENABLE = { operation: 'patchUser', command: 'user enable {account}' }
const CONFIGURATION = { operator: true } as const

/** What opens what each reason refuses. Absent: only waiting helps. The command names the account as it is typed. */
export const REMEDIES: Readonly<Partial<Record<Reason, Opening>>> = {
  no_account: { operation: 'inviteUser', command: 'user invite {account}' },
  disabled: ENABLE,
  expired: ENABLE,
  invitation_open: { operation: 'inviteUser', command: 'user invite {account}' },
  password_locked: UNLOCK,
  paused: UNLOCK,
  limited: UNLOCK,
  no_method: { operation: 'recoverUser', command: 'user recover {account}' },
  wrong_password: { operation: 'recoverUser', command: 'user recover {account}' },
  wrong_code: { self: 'enterNewestCode' },
  clock: { self: 'setClock' },
  factor_missing: { operation: 'resetFactors', command: 'user factors reset {account}' },
  factor_locked: UNLOCK,
  method_off: CONFIGURATION,
  method_lost: { operation: 'resetFactors', command: 'user factors reset {account}' },
  acr_unmet: { self: 'addFactor' },
  upstream_off: CONFIGURATION,
  upstream_refused: CONFIGURATION,
  upstream_ended: { self: 'signIn' },
  only_upstream: { self: 'signInWithProvider' },
  taken: { operation: 'replaceIdentityOfUser', command: 'user identities replace --help' },
  stale: { self: 'signIn' },
  roles_absent: CONFIGURATION,
  former_unavailable: CONFIGURATION,
  unproved_address: { operation: 'patchUser', command: 'user verify-email {account}' },
  wrong_app: CONFIGURATION,
  unknown_client: { operation: 'createClient', command: 'client create --help' },
  client_disabled: { operation: 'patchClient', command: 'client patch {detail} --enable' },
  owner_stopped: CLIENT,
  scope_not_allowed: CLIENT,
  role_missing: { operation: 'patchUser', command: 'user roles {account} --add ROLE' },
  consent_needed: { self: 'consent' },
  unknown_resource: { operation: 'createResource', command: 'resource create {detail} --name NAME' },
  grant_not_allowed: CLIENT,
  not_requested: { self: 'requestScope' },
  other_audience: { self: 'requestWithoutResource' },
  mail_waiting: RETRY,
  mail_failed: RETRY
}
