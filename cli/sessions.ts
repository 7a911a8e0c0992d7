import { IdentityError } from '../lib/errors.ts'
import type { Acr } from '../lib/proofs.ts'
import { type Args, UsageError, toggle, value } from './args.ts'
import type { Commands } from './command.ts'
import { requireUser } from './input.ts'

/** The class of the flag `below`. */
function readClass (args: Args): Acr | undefined {
  const text = args.optional('below')
  if (text === undefined || text === 'mfa' || text === 'phr') return text
  throw new UsageError('--below: must be mfa or phr')
}

export const sessionsCommands: Commands = {
  'sessions end': {
    summary: 'End the sessions and tokens of one user, or of all users with --all.',
    flags: {
      user: value('ACCOUNT', 'The account.'),
      all: toggle('All users.'),
      below: value('CLASS', 'mfa or phr: only sessions in which the user has proved less. By default all of them.')
    },
    creates: false,
    async run (context) {
      const { services: { users, tokenSessions, tokens }, args } = context
      args.requireOne('user', 'all')
      const below = readClass(args)
      let [ended, sessions] = [0, 0]
      const end = async (user_id: string) => {
        if (below === undefined) return await tokenSessions.end(user_id)
        sessions += await tokenSessions.endBelow(user_id, below)
      }
      if (args.has('all')) {
        for await (const batch of users.list({ limit: 0 })) {
          for (const { user_id } of batch) {
            await end(user_id).then(() => { ended++ }, (error) => {
              // The user was deleted meanwhile, and their sessions with them.
              if (!(error instanceof IdentityError) || error.code !== 'ErrNotFound') throw error
            })
          }
        }
      } else {
        await end((await requireUser(context, 'user')).user_id)
        ended++
      }
      await tokens.settle()
      return { users: ended, ...(below !== undefined && { sessions }) }
    }
  }
}
