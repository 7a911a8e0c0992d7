import type { Factor } from '../schemas/factor.ts'
import { ACCOUNT, OPERATOR, type Commands } from './command.ts'
import { requireUser } from './input.ts'
import { printList } from './output.ts'

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
      await printList(context, (async function * () { yield factors })(), COLUMNS)
    }
  },

  'user factors reset': {
    summary: 'Remove all second factors and recovery codes of a user who lost them, and end their sessions.',
    flags: { account: ACCOUNT },
    async run (context) {
      const { user_id, account } = await requireUser(context)
      const { removed } = await context.services.heldFactors.reset(user_id, OPERATOR)
      return { user_id, account, removed_factors: removed }
    }
  }
}
