/**
 * Commands about one user that support staff need: the same services, rules and events as those of the API.
 * @module
 */
import type { UserItem } from '../schemas/user.ts'
import { toTimestamp } from '../lib/clock.ts'
import { toggle } from './args.ts'
import { ACCOUNT, type Commands, type Context, FORCE, OPERATOR, toOperator, type Result, YES } from './command.ts'
import { confirm } from './confirm.ts'
import { requireUser } from './input.ts'

const CLIENTS_STOP = 'Clients that the operator does not vouch for sign nobody in while their owner is disabled.'
const CLIENTS_STAY = 'The clients stay, owned by this user_id: client list shows them, and client delete removes one.'

interface Owner { user_id: string, account: string, clients: number }

/** The user of the flag, and how many clients they own: whoever disables or deletes a user should know. */
async function findOwner (context: Context): Promise<Owner> {
  const { user_id, account } = await requireUser(context)
  return { user_id, account, clients: await context.services.clients.count(user_id, OPERATOR) }
}

const countClients = (count: number): string => `${count} client${count === 1 ? '' : 's'}`

/** The result for an owner whose clients have stopped, as far as they depend on them. */
async function countStopped ({ services: { clients } }: Context, owner: Owner, note: string): Promise<Result> {
  return [{ ...owner, stopped_clients: await clients.countDependent(owner.user_id) }, owner.clients > 0 ? note : undefined]
}

/** Text has the names of the roles, and free JSON in a line. */
function toLines ({ roles, info, attributes, ...user }: UserItem): object {
  return { ...user, roles: Object.keys(roles), info: JSON.stringify(info), ...(attributes !== undefined && { attributes: JSON.stringify(attributes) }) }
}

export const manageUserCommands: Commands = {
  'user show': {
    summary: 'Show a user.',
    example: 'user show ann@example.com',
    flags: { account: ACCOUNT },
    creates: false,
    async run (context) {
      const { user_id, clients } = await findOwner(context)
      const user = await context.services.users.require(user_id, { fields: 'expired,disabled' })
      return { ...(context.json ? user : toLines(user)), clients }
    }
  },

  'user disable': {
    summary: 'Disable a user. Ends all their sessions and tokens.',
    example: 'user disable ann@example.com',
    flags: { account: ACCOUNT, force: FORCE },
    async run (context) {
      const found = await findOwner(context)
      await context.services.users.patch(found.user_id, { disable: true }, toOperator(context.args))
      return await countStopped(context, found, CLIENTS_STOP)
    }
  },

  'user enable': {
    summary: 'Enable a user again. Also one who has expired. Tokens from before stay ended.',
    example: 'user enable ann@example.com',
    flags: { account: ACCOUNT },
    async run (context) {
      const { users } = context.services
      const found = await findOwner(context)
      const { expired_at } = await users.require(found.user_id, { fields: 'expired' })
      const now = toTimestamp(Date.now())
      const again = expired_at == null || expired_at > now ? {} : { data: { verified_at: now } }
      await users.patch(found.user_id, { ...again, disable: false }, OPERATOR)
      return found
    }
  },

  'user delete': {
    summary: 'Delete a user with all their sessions and tokens.',
    example: 'user delete ann@example.com',
    flags: {
      account: ACCOUNT,
      clients: toggle('Delete their clients too. Without it the clients stay, and stop unless the operator vouches for them.'),
      force: FORCE,
      yes: YES
    },
    async run (context) {
      const { services: { users, clients }, args } = context
      const found = await findOwner(context)
      await confirm(context, `Delete the user ${found.account}${args.has('clients') ? ` and their ${countClients(found.clients)}` : ''}?`)
      await users.remove(found.user_id, toOperator(args))
      // Afterwards, as in the API: if this is interrupted, the clients that are left sign nobody in any more.
      if (args.has('clients')) return { ...found, deleted_clients: await clients.removeOwned(found.user_id, OPERATOR) }
      return await countStopped(context, found, CLIENTS_STAY)
    }
  },

  'user verify-email': {
    summary: "Mark a user's address as verified. An emailed link does the same.",
    example: 'user verify-email ann@example.com',
    flags: { account: ACCOUNT },
    async run (context) {
      const { users } = context.services
      const { user_id } = await requireUser(context)
      await users.patch(user_id, { data: { email_verified: true } }, OPERATOR)
      const { account, email, email_verified_at } = await users.require(user_id)
      return { user_id, account, email, email_verified_at }
    }
  }
}
