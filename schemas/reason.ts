import { Type, type Static } from '@sinclair/typebox'
import { TimestampSchema } from './common.ts'

/**
 * Why somebody cannot sign in, or why an app does not get something about them: the one list of answers, events and docs. A code is never
 * reused for something else.
 */
export const REASONS = {
  no_account: 'No account has this name.',
  disabled: 'An administrator has disabled the account.',
  expired: 'The account has expired.',
  invitation_open: 'They were invited and have not accepted the invitation, so that they have no password.',
  password_locked: 'There were too many wrong passwords in a row. Only a new password or an administrator unlocks it.',
  paused: 'There were many wrong passwords or codes in a row, and the next attempt has to wait.',
  limited: 'There were too many attempts within a minute.',
  no_method: 'They have no method with which a sign-in begins.',
  wrong_password: 'The password was wrong.',
  wrong_code: 'The verification code, backup code or passkey was wrong.',
  clock: 'The verification code was one of another time: the clock of the device is wrong.',
  factor_missing: 'Two-factor authentication is required of them, and they have not set it up.',
  factor_locked: 'There were too many wrong codes of the authenticator app, or wrong backup codes. Another method works, or an administrator unlocks it.',
  method_off: 'The configuration turns this method off.',
  method_lost: 'What the method needs is gone: its passkey, authenticator app or identity no longer exists.',
  acr_unmet: 'The app asks for more than they can prove.',
  upstream_off: 'The other provider is off here.',
  upstream_refused: 'The other provider, or its settings here, refused them.',
  upstream_down: 'The other provider did not answer as it should.',
  upstream_ended: 'The other provider has ended the session there.',
  only_upstream: 'They sign in by another provider alone.',
  taken: 'Another account has the address, or another identity has the account.',
  stale: 'What they have proved is too old for this.',
  roles_absent: 'The other provider does not give them any of the roles that it has to.',
  former_unavailable: 'The old system, which holds the password, cannot be asked.',
  unproved_address: 'Their address is not proved: no identity at another provider joins the account by it, and support staff cannot send a link to it.',
  wrong_app: 'The method is for other apps.',
  unknown_client: 'No app has this id.',
  client_disabled: 'An administrator has disabled the app.',
  owner_stopped: 'The owner of the app is disabled or gone, and nobody vouches for it.',
  scope_not_allowed: 'The app may not ask for this scope.',
  role_missing: 'The resource requires a role that they do not have.',
  consent_needed: 'They have not allowed the app this yet.',
  unknown_resource: 'No resource has this URI.',
  grant_not_allowed: 'The app may not use this grant, or nobody owns it.',
  not_requested: 'The app does not request it: a scope for a claim, or `acr_values`.',
  no_value: 'They have no value for it.',
  in_userinfo: 'The ID token leaves it to userinfo, because the app has not turned on `id_token_claims`.',
  other_audience: 'The access token is for a resource, so it says nothing about them here.',
  of_sign_in: 'It depends on the sign-in that the token comes from.',
  mail_waiting: 'An email to them waits to be sent.',
  mail_failed: 'The mail server did not take an email to them.'
} as const

export type Reason = keyof typeof REASONS

export const ReasonCodeSchema = Type.Union(Object.keys(REASONS).map((code) => Type.Literal(code as Reason)), {
  description: Object.entries(REASONS).map(([code, text]) => `\`${code}\`: ${text}`).join('\n')
})

/** What opens it again. */
export const RemedySchema = Type.Object({
  operation: Type.String({ description: 'The operation of the API, or what they can do themselves.', examples: ['unlockUser'] }),
  who: Type.Array(Type.String(), { description: 'Roles that may call it, by the access table; `self`: they themselves.', examples: [['admin']] }),
  allowed: Type.Boolean({ description: 'Whether the caller of this request may.' })
}, { title: 'Remedy' })
export type Remedy = Static<typeof RemedySchema>

export const ReasonSchema = Type.Object({
  reason: ReasonCodeSchema,
  until: Type.Optional(Type.String({ ...TimestampSchema, description: 'Until when waiting helps. Limits of another machine last for a minute at most.' })),
  detail: Type.Optional(Type.String({ description: 'The provider, app, scope, role or kind of email that it is about.' })),
  method: Type.Optional(Type.String({ description: 'The id of the method that it concerns. Absent: the whole sign-in.' })),
  remedy: Type.Optional(RemedySchema)
}, { title: 'Reason' })
