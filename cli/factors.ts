import type { Factor } from '../schemas/factor.ts'
import { ACCOUNT, OPERATOR, type Commands } from './command.ts'
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
    summary: "List a user's second factors.",
    flags: { account: ACCOUNT },
    creates: false,
    async run (context) {
      const { user_id } = await requireUser(context)
      const { factors } = await context.services.heldFactors.list(user_id)
      await printList(context, toBatches(factors), COLUMNS)
    }
  },

  'user factors reset': {
    summary: 'Remove all second factors and recovery codes of a user who lost them, and end their sessions. While one is demanded of the user, the link to add a new one is mailed, or printed.',
    flags: { account: ACCOUNT },
    async run (context) {
      const { user_id, account } = await requireUser(context)
      const { heldFactors } = context.services
      const { removed, ...link } = await heldFactors.reset(user_id, OPERATOR)
      const done = { user_id, account, removed_factors: removed, ...link }
      if (link.sent === undefined) return done
      return [done, link.sent ? 'The link to add a new one goes by mail.' : 'Hand the link over: only with it, and the password, a new one is added.']
    }
  }
}
