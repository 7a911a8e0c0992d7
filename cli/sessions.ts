import { defined } from '../lib/defined.ts'
import { IdentityError } from '../lib/errors.ts'
import type { Acr } from '../lib/proofs.ts'
import { choice, toggle, value } from './args.ts'
import { type Commands, YES } from './command.ts'
import { confirm } from './confirm.ts'
import { requireUser } from './input.ts'

export const sessionsCommands: Commands = {
  'sessions end': {
    summary: 'End the sessions and tokens of a user, or of all.',
    example: 'sessions end ann@example.com',
    flags: {
      user: { ...value('ACCOUNT', 'The account.'), operand: true, or: 'all' },
      all: toggle('All users, and the service tokens of all clients.'),
      below: choice('CLASS', ['mfa', 'phr'], 'mfa or phr: only sessions in which the user has proved less. All of them by default.'),
      yes: YES
    },
    creates: false,
    async run (context) {
      const { services: { users, tokenSessions, tokens, serviceTokens }, args } = context
      const below = args.optional('below') as Acr | undefined
      let [ended, sessions] = [0, 0]
      let serviceTokensEnded: number | undefined
      const end = async (user_id: string) => {
        if (below === undefined) return await tokenSessions.end(user_id)
        sessions += await tokenSessions.endBelow(user_id, below)
      }
      if (args.has('all')) {
        await confirm(context, 'End the sessions and tokens of all users, and all service tokens?')
        for await (const batch of users.list({ limit: 0 })) {
          for (const { user_id } of batch) {
            await end(user_id).then(() => { ended++ }, (error) => {
              // The user was deleted meanwhile, and their sessions with them.
              if (!(error instanceof IdentityError) || error.code !== 'ErrNotFound') throw error
            })
          }
        }
        if (below === undefined) serviceTokensEnded = await serviceTokens.endAll()
      } else {
        await end((await requireUser(context, 'user')).user_id)
        ended++
      }
      await tokens.settle()
      return defined({ users: ended, sessions: below === undefined ? undefined : sessions, service_tokens: serviceTokensEnded })
    }
  }
}
