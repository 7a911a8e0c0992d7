import { InviteUserSchema } from '../schemas/people.ts'
import type { Unlocked } from '../schemas/unlock.ts'
import { CreateUserSchema, PatchUserSchema, type User, type UserItem } from '../schemas/user.ts'
import { checkTimestamp } from '../lib/checks.ts'
import { defined } from '../lib/defined.ts'
import { paramError } from '../lib/errors.ts'
import { type Args, UsageError, repeated, toggle, value } from './args.ts'
import { ACCOUNT, FORCE, OPERATOR, type Commands, toOperator, type Result } from './command.ts'
import { inviteImported } from './invite-imported.ts'
import { type Password, checkInput, readRoles, requireUser, takePassword } from './input.ts'
import { printList } from './output.ts'

const PASSWORD = toggle('Read the password from stdin. Without it, a password is generated and shown.')

/** Flags of a new user. */
const NEW = {
  account: { ...ACCOUNT, text: 'An email address, or letters, digits, - and _.' },
  name: value('NAME', 'Display name.'),
  role: repeated('ROLE', 'A role')
}

const LINK = 'Hand the link over: whoever has it chooses the password. It works once.'

/** The account and the name of a new user. */
function readUser (args: Args): { account: string, name?: string } {
  const name = args.optional('name')
  return defined({ account: args.required('account'), name })
}

/** The result with the password, if it was generated. */
function showPassword ({ user_id, account }: User, { password, generated }: Password): Result {
  return generated ? [{ user_id, account, password }, 'The password is shown only once.'] : { user_id, account }
}

/** Whether the account is an address, or an administrator has set one, that is not proved to be the user's. */
function hasUnprovedAddress ({ account, email = account, email_verified_at }: UserItem): boolean {
  return email.includes('@') && email_verified_at === undefined
}

function describeState (user: UserItem): string {
  if (user.disabled_at) return 'disabled'
  if (user.expired_at) return `expires ${user.expired_at}`
  return hasUnprovedAddress(user) ? 'unverified' : 'active'
}

/** What was unlocked, each with the reason for which it was locked. */
const describeOpened = (opened: Unlocked['opened']): string => (
  opened.length === 0 ? 'nothing was locked' : opened.map(({ part, reason, factor_id }) => [part, factor_id, `(${reason})`].filter(Boolean).join(' ')).join(', '))

const COLUMNS = {
  USER_ID: 'user_id',
  ACCOUNT: 'account',
  NAME: 'name',
  ROLES: (user: UserItem) => Object.keys(user.roles).join(','),
  STATE: describeState,
  CREATED: 'created_at'
} as const

const HINTS = { short: ['USER_ID'], keep: ['ACCOUNT'] }

export const userCommands: Commands = {
  'user create': {
    summary: 'Create a user.',
    example: 'user create ann@example.com --name "Ann Lee"',
    flags: {
      account: NEW.account,
      'password-stdin': PASSWORD,
      name: NEW.name,
      role: NEW.role,
      'email-verified': toggle('The account is an email address, and you know that it is theirs: apps see it as verified.'),
      expires: value('TIME', 'RFC 3339: when the account expires. Without it, it does not.')
    },
    async run (context) {
      const { services, args } = context
      const expires = args.optional('expires')
      const expired_at = expires === undefined ? undefined : checkTimestamp('expires', expires)
      const taken = await takePassword(context)
      const body = checkInput(CreateUserSchema, defined({ data: { ...readUser(args), password: taken.password }, expired_at }))
      const { user_id } = await services.users.create(body, { roles: readRoles(args), verified: args.has('email-verified') })
      return showPassword(await services.users.require(user_id), taken)
    }
  },

  'user list': {
    summary: 'List users.',
    example: 'user list --contains ann',
    flags: {
      search: value('TEXT', 'Only users with words of the name, account or address that begin so, in any case and without accents.'),
      contains: value('TEXT', 'Only accounts that contain this text.'),
      'no-factor': toggle('Only users without two-factor authentication.'),
      'no-way': toggle('Only users without any sign-in method: an upstream of theirs is no longer configured, for example.'),
      upstream: value('ID', 'Only users who have an identity of this upstream.'),
      limit: value('N', 'Maximum number; all users by default.')
    },
    creates: false,
    async run (context) {
      const { services, args } = context
      if (args.has('no-way')) return await printList(context, services.listWithoutWay(), COLUMNS, HINTS)
      const users = services.users.list({
        ...defined({ search: args.optional('search') }),
        contains: args.optional('contains'),
        upstream: args.optional('upstream'),
        factor: args.has('no-factor') ? 'none' : undefined,
        limit: args.limit(),
        fields: 'expired,disabled'
      })
      await printList(context, users, COLUMNS, HINTS)
    }
  },

  'user count': {
    summary: 'Count users.',
    example: 'user count --search kowal --max 10000',
    flags: {
      search: value('TEXT', 'Only users whom `user list --search` finds.'),
      max: value('N', 'Stop at this number, up to 100000, and say that there are more.')
    },
    creates: false,
    async run ({ services: { users }, args }) {
      return await users.countUpTo(defined({ search: args.optional('search'), max: args.integer('max', { minimum: 1, maximum: 100_000 }) }))
    }
  },

  'user password': {
    summary: 'Set a new password for a user. This ends all their tokens.',
    example: 'user password ann@example.com',
    flags: { account: ACCOUNT, 'password-stdin': PASSWORD },
    async run (context) {
      const user = await requireUser(context)
      const taken = await takePassword(context)
      await context.services.users.patch(user.user_id, checkInput(PatchUserSchema, { data: { password: taken.password } }), OPERATOR)
      return showPassword(user, taken)
    }
  },

  'user unlock': {
    summary: "Unlock a user's password and authenticator apps after too many wrong attempts.",
    example: 'user unlock ann@example.com',
    flags: { account: ACCOUNT },
    async run (context) {
      const { user_id, account } = await requireUser(context)
      const { opened, not_closed, elsewhere_until } = await context.services.users.unlock(user_id, OPERATOR)
      const done = { user_id, account, ...(context.json ? { opened, not_closed } : { unlocked: describeOpened(opened) }) }
      if (elsewhere_until === undefined) return done
      return [{ ...done, elsewhere_until }, `The running service may refuse attempts until ${elsewhere_until}: it limits those of a minute itself.`]
    }
  },

  'user invite': {
    summary: 'Create a user who sets their password with a link. It is emailed, or shown if the service has no email.',
    example: 'user invite ann@example.com --role editor',
    flags: {
      ...NEW,
      account: { ...value('ACCOUNT', NEW.account.text), operand: true, or: 'imported' },
      imported: value('SOURCE', 'Instead: email a link to everybody whom an import from this source has brought in, and who cannot sign in yet.'),
      'per-minute': value('N', 'Emails a minute with --imported, from 1 to 6000. Default 60.')
    },
    async run (context) {
      const { services: { accounts }, args } = context
      if (args.optional('imported') !== undefined) return await inviteImported(context)
      const { data } = checkInput(InviteUserSchema, { data: readUser(args) })
      const invited = await accounts.inviteUser(defined({ ...data, roles: args.all('role').length > 0 ? readRoles(args) : undefined }), OPERATOR)
      return [invited, invited.link === undefined ? 'The link goes by email.' : LINK]
    }
  },

  'user recover': {
    summary: 'Let a user set a new password with a link. It is emailed, or shown if the service has no email.',
    example: 'user recover ann@example.com',
    flags: { account: ACCOUNT },
    async run (context) {
      const { accounts } = context.services
      const { user_id, account } = await requireUser(context)
      const recovered = await accounts.recoverUser(user_id, OPERATOR)
      return [{ user_id, account, ...recovered }, recovered.sent ? 'The link goes by email.' : LINK]
    }
  },

  'user roles': {
    summary: 'Add or remove roles of a user.',
    example: 'user roles ann@example.com --add editor',
    flags: {
      account: ACCOUNT,
      add: repeated('ROLE', 'A role to add'),
      remove: repeated('ROLE', 'A role to remove'),
      force: FORCE
    },
    async run (context) {
      const { services, args } = context
      const [added, removed] = [args.all('add'), args.all('remove')]
      if (added.length + removed.length === 0) throw new UsageError('--add: is required, or --remove')
      const empty = ['add', 'remove'].find((flag) => args.all(flag).includes(''))
      if (empty !== undefined) throw new UsageError(`--${empty}: must not be empty`)
      const both = added.find((role) => removed.includes(role))
      if (both !== undefined) throw new UsageError('--add: names a role that --remove also names')
      const { user_id, account } = await requireUser(context)
      const roles = await services.users.changeRoles(user_id, (held) => {
        const missing = removed.find((role) => !Object.hasOwn(held, role))
        if (missing !== undefined) throw paramError('remove', 'the user does not have this role')
        // A role that the user already has keeps its attributes.
        const given: User['roles'] = { ...Object.fromEntries(added.map((role) => [role, true as const])), ...held }
        const roles = Object.fromEntries(Object.entries(given).filter(([role]) => !removed.includes(role)))
        checkInput(PatchUserSchema, { data: { roles } })
        return roles
      }, toOperator(args))
      return { user_id, account, roles: context.json ? roles : Object.keys(roles) }
    }
  }
}
