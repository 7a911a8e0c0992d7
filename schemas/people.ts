import { type TProperties, Type } from '@sinclair/typebox'
import { Data, IdSchema, LIMITS, RolesSchema } from './common.ts'

/** Characters of a link's token: 43. */
const Token = Type.String({ minLength: 1, maxLength: LIMITS.token, description: 'The token of the link.' })
const Address = Type.String({ minLength: 1, maxLength: LIMITS.account, description: 'An email address.' })
const Password = Type.String({ maxLength: LIMITS.password })
const CurrentPassword = Type.Optional(Type.String({
  maxLength: LIMITS.password, description: "The user's current password. Required, except with an unrestricted token of the operator's or from a fresh sign-in."
}))

/** Where the person continues after using the link. */
const ReturnTo = {
  clientId: Type.Optional(IdSchema),
  returnTo: Type.Optional(Type.String({
    maxLength: LIMITS.uri,
    description: 'Where the user continues: a registered redirect URI of the client in clientId.'
  }))
}

const Body = <P extends TProperties>(properties: P, title: string, example: object) =>
  Type.Object({ data: Type.Object(properties, { additionalProperties: false }) }, { additionalProperties: false, title, examples: [{ data: example }] })

const TOKEN = '3zv4Zc0m1QyXv9hYk2aW8pTq7LrN5sDeF6gHjKxBuVo'
const PASSWORD = 'correct horse battery staple'

export const ForgotPasswordSchema = Body({
  account: Type.String({ minLength: 1, maxLength: LIMITS.account, description: 'The account, or the verified address.' })
}, 'ForgotPassword', { account: 'ann@example.com' })

export const SetPasswordSchema = Body({
  token: Token, password: Password, name: Type.Optional(Type.String({ maxLength: LIMITS.name, description: 'The name of a new user; for a sign-up only.' }))
}, 'SetPassword', { token: TOKEN, password: PASSWORD })

export const SignUpSchema = Body({ email: Address, ...ReturnTo }, 'SignUp', { email: 'ann@example.com' })

export const VerifyAddressSchema = Body({ token: Token }, 'VerifyAddress', { token: TOKEN })

export const UndoAddressSchema = Body({ token: Token }, 'UndoAddress', { token: TOKEN })

export const ChangeAddressSchema = Body({ email: Address, current_password: CurrentPassword }, 'ChangeAddress', {
  email: 'ann@example.org', current_password: PASSWORD
})

export const InviteUserSchema = Body({
  account: Type.String({ minLength: 1, maxLength: LIMITS.account, description: 'The account of the new user: an email address, or a name.' }),
  name: Type.Optional(Type.String({ maxLength: LIMITS.name })),
  roles: Type.Optional({ ...RolesSchema, description: 'Admin only.' } as typeof RolesSchema),
  ...ReturnTo
}, 'InviteUser', { account: 'bob@example.com', name: 'Bob' })

const Link = Type.Optional(Type.String({ description: 'The link, where it does not go by email. Hand it over: whoever has it chooses the password.' }))

export const InvitedSchema = Data(Type.Object({ user_id: Type.String(), link: Link }))

export const RecoveredSchema = Data(Type.Object({ sent: Type.Boolean({ description: 'Whether the link goes by email.' }), link: Link }))

export const DeleteProfileSchema = Body({ current_password: CurrentPassword }, 'DeleteProfile', { current_password: PASSWORD })

/** The result of a release of an address. */
export const AddressReleasedSchema = Data(Type.Object({ account: Type.String({ description: 'What the user is called now.' }) }))
