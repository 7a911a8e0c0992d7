import type { Factor } from '../schemas/factor.ts'
import { ACCOUNT, OPERATOR, type Commands, YES } from './command.ts'
import { confirm } from './confirm.ts'
import { requireUser } from './input.ts'
import { printList, toBatches } from './output.ts'

const COLUMNS = {
  FACTOR_ID: (factor: Factor) => factor.factor_id,
  KIND: (factor: Factor) => factor.kind,
  NAME: (factor: Factor) => factor.name ?? '',
  CREATED: (factor: Factor) => factor.created_at,
  USED: (factor: Factor) => factor.last_used_at ?? ''
}

export const factorCommands: Commands = {
  'user factors list': {
    summary: "List a user's two-factor methods.",
    example: 'user factors list ann@example.com',
    flags: { account: ACCOUNT },
    creates: false,
    async run (context) {
      const { user_id } = await requireUser(context)
      const { factors } = await context.services.heldFactors.list(user_id)
      await printList(context, toBatches(factors), COLUMNS)
    }
  },

  'user factors reset': {
    summary: "Reset a user's two-factor authentication. Ends their sessions. If it is required of the user, the link to set it up again " +
      'is emailed, or printed.',
    example: 'user factors reset ann@example.com',
    flags: { account: ACCOUNT, yes: YES },
    async run (context) {
      const { user_id, account } = await requireUser(context)
      const { heldFactors } = context.services
      await confirm(context, `Reset the two-factor authentication of ${account}?`)
      const { removed, ...link } = await heldFactors.reset(user_id, OPERATOR)
      const done = { user_id, account, removed_factors: removed, ...link }
      if (link.sent === undefined) return done
      return [done, link.sent ? 'The link to set it up again goes by email.' : 'Hand the link over: only with it, and the password, a new one is added.']
    }
  }
}
