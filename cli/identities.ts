import type { Identity } from '../schemas/identity.ts'
import { value } from './args.ts'
import { ACCOUNT, OPERATOR, type Commands } from './command.ts'
import { requireUser } from './input.ts'
import { printList, toBatches } from './output.ts'

const COLUMNS = {
  IDENTITY_ID: (identity: Identity) => identity.identity_id,
  UPSTREAM: (identity: Identity) => identity.upstream,
  SUBJECT: (identity: Identity) => identity.subject,
  CREATED: (identity: Identity) => identity.created_at,
  USED: (identity: Identity) => identity.last_used_at ?? ''
}

export const identityCommands: Commands = {
  'user identities list': {
    summary: "List a user's identities at other providers.",
    flags: { account: ACCOUNT },
    creates: false,
    async run (context) {
      const { user_id } = await requireUser(context)
      await printList(context, toBatches(await context.services.heldIdentities.list(user_id)), COLUMNS)
    }
  },

  'user identities remove': {
    summary: 'Unlink an identity of a user at another provider, and end their sessions. The last way in stays.',
    flags: { account: ACCOUNT, id: { ...value('ID', 'The id of the identity, from user identities list.'), required: true } },
    async run (context) {
      const { user_id, account } = await requireUser(context)
      const { accounts, heldIdentities } = context.services
      const identity_id = context.args.required('id')
      await heldIdentities.removeOf(user_id, identity_id, OPERATOR)
      await accounts.outbox?.settle()
      return { user_id, account, identity_id }
    }
  }
}
