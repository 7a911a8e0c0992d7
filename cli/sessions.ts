import { IdentityError } from '../lib/errors.ts'
import { toggle, value } from './args.ts'
import type { Commands } from './command.ts'
import { requireUser } from './input.ts'
import { printRecord } from './output.ts'

export const sessionsCommands: Commands = {
  'sessions end': {
    summary: 'End the sessions and tokens of one user, or of all users with --all.',
    flags: {
      user: value('ACCOUNT', 'The account.'),
      all: toggle('All users.')
    },
    creates: false,
    async run (context) {
      const { services: { users, tokenSessions, tokens }, args } = context
      args.requireOne('user', 'all')
      let ended = 0
      if (args.has('all')) {
        for await (const batch of users.list({ limit: 0 })) {
          for (const { user_id } of batch) {
            await tokenSessions.end(user_id).then(() => { ended++ }, (error) => {
              // The user was deleted meanwhile, and their sessions with them.
              if (!(error instanceof IdentityError) || error.code !== 'ErrNotFound') throw error
            })
          }
        }
      } else {
        await tokenSessions.end((await requireUser(context, 'user')).user_id)
        ended++
      }
      await tokens.settle()
      printRecord(context, { users: ended })
    }
  }
}
