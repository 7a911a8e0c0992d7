import { Type, type Static } from '@sinclair/typebox'
import {
  AttributesSchema, Data, DeadlineQuery, HeldRolesSchema, InfoSchema, LIMITS, MaxQuery, PageSchema, QueryText, RolesSchema, TimestampSchema, describe
} from './common.ts'

/** A user's own profile (`GET /user`). */
export const ProfileSchema = Type.Object({
  account: Type.String(),
  created_at: TimestampSchema,
  modified_at: TimestampSchema,
  verified_at: Type.Optional(TimestampSchema),
  email: Type.Optional(Type.String({ description: 'The address that is proved to be the user\'s or that an administrator has set, if there is one: the account itself, or another.' })),
  email_verified_at: Type.Optional(Type.String({ ...TimestampSchema, description: 'When it was proved to be the user\'s. Independent of verified_at.' })),
  email_verified_by: Type.Optional(Type.String({
    description: 'Who has proved it: `mail`, a link that was emailed to it; `operator`, an administrator who set email_verified; `import`, an import that trusts addresses; or the id ' +
      'of an upstream. Absent for one that was proved under an earlier layout of the database.'
  })),
  roles: HeldRolesSchema,
  name: Type.String(),
  info: InfoSchema,
  attributes: Type.Optional(AttributesSchema)
}, { title: 'Profile' })
export type Profile = Static<typeof ProfileSchema>

/** A user as an admin sees it. */
export const UserSchema = Type.Object({ user_id: Type.String(), ...ProfileSchema.properties }, { title: 'User' })
export type User = Static<typeof UserSchema>

const Nullable = Type.Union([TimestampSchema, Type.Null()])

/** A user in a list, or one user, with the times that `fields` requests. */
export const UserItemSchema = Type.Object({
  ...UserSchema.properties,
  expired_at: Type.Optional(Nullable),
  disabled_at: Type.Optional(Nullable)
}, { title: 'UserItem' })
export type UserItem = Static<typeof UserItemSchema>

const NewUserSchema = Type.Object({
  account: Type.String({ maxLength: LIMITS.account, description: 'An email address, or letters, digits, - and _ starting with a letter or digit. Lower-cased.' }),
  password: Type.String({ maxLength: LIMITS.password }),
  name: Type.Optional(Type.String({ maxLength: LIMITS.name })),
  info: Type.Optional(InfoSchema),
  attributes: Type.Optional(AttributesSchema)
}, { additionalProperties: false })

export const CreateUserSchema = Type.Object({
  data: NewUserSchema,
  expired_at: Type.Optional(Type.String({ maxLength: 64, description: 'RFC 3339. The user is not verified, and expires at this time.' }))
}, {
  additionalProperties: false,
  title: 'CreateUser',
  examples: [{ data: { account: 'ann@example.com', password: 'correct horse battery staple', name: 'Ann' } }]
})
export type CreateUser = Static<typeof CreateUserSchema>

const ProfilePatchSchema = Type.Partial(Type.Omit(NewUserSchema, ['account', 'attributes']))

export const PatchProfileSchema = Type.Object({
  data: Type.Object({
    ...ProfilePatchSchema.properties,
    current_password: Type.Optional(Type.String({
      maxLength: LIMITS.password,
      description: "The user's current password. Required with a new one, except with an unrestricted token " +
        "of the operator's, or from a fresh sign-in of an app with account:security."
    }))
  }, { additionalProperties: false }),
  regen_secrets: Type.Optional(Type.Boolean({ description: "true also gives the user's confidential clients new secrets, which revokes their tokens." }))
}, { additionalProperties: false, title: 'PatchProfile', examples: [{ data: { name: 'Ann', info: { language: 'en' } } }] })
export type PatchProfile = Static<typeof PatchProfileSchema>

export const PatchUserSchema = Type.Object({
  data: Type.Optional(Type.Object({
    verified_at: Type.Optional(Type.String({ maxLength: 64, description: 'RFC 3339; admin only. Clears expired_at.' })),
    email_verified: Type.Optional(Type.Literal(true, {
      description: "Admin only. Marks the user's address, to which emails go, as " +
      'verified, as an emailed link does.'
    })),
    roles: Type.Optional(RolesSchema),
    attributes: Type.Optional(describe(AttributesSchema, `Admin only. ${AttributesSchema.description} Replaces the previous one.`)),
    email: Type.Optional(Type.String({
      minLength: 1, maxLength: LIMITS.account, description: 'Admin only. Sets the address, unverified unless it stays the same. The previous address is told, and cannot undo the change or an earlier one.'
    })),
    ...ProfilePatchSchema.properties
  }, { additionalProperties: false })),
  disable: Type.Optional(Type.Boolean({ description: 'true disables the user and revokes their tokens, false enables the user.' }))
}, { additionalProperties: false, title: 'PatchUser', examples: [{ data: { roles: { editor: true } }, disable: false }] })
export type PatchUser = Static<typeof PatchUserSchema>

export const UserCreatedSchema = Data(Type.Object({ user_id: Type.String() }))

const FieldsQuery = { fields: QueryText('Comma-separated: expired adds expired_at, disabled adds disabled_at.') }
export const UserQuerySchema = Type.Object(FieldsQuery, { additionalProperties: false })

const AccountQuery = {
  account: QueryText('The exact account. Takes precedence over contains.'),
  contains: QueryText('A part of the account. It reads all accounts: see deadline.'),
  search: QueryText('Beginnings of words of the name, the account or the email address, in any case and without accents, at most 8: all must be found. Not with account, contains or sort.'),
  factor: Type.Optional(Type.Union([Type.Literal('none'), Type.Literal('any')], { description: 'Only users without two-factor authentication, or with it.' })),
  upstream: QueryText('The id of an upstream: only users who have an identity of it.')
}
export const UserCountQuerySchema = Type.Object({ ...AccountQuery, ...MaxQuery }, { additionalProperties: false })
export type UserCountQuery = Static<typeof UserCountQuerySchema>
export const UserListQuerySchema = Type.Object({
  ...AccountQuery,
  ...FieldsQuery,
  sort: QueryText('Comma-separated key:direction. Keys: account, created, modified, verified, name. Default account:asc.'),
  ...DeadlineQuery,
  ...PageSchema
}, { additionalProperties: false })
export type UserListQuery = Static<typeof UserListQuerySchema>

export const DeleteUserQuerySchema = Type.Object({
  clients: Type.Optional(Type.Literal('delete', { description: "Removes the user's clients too. Absent: they stay." }))
}, { additionalProperties: false })
