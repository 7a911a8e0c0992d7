import { type Identity, ReplaceIdentitySchema } from '../schemas/identity.ts'
import { required, value } from './args.ts'
import { ACCOUNT, OPERATOR, type Commands, YES } from './command.ts'
import { confirm } from './confirm.ts'
import { checkInput, requireUser } from './input.ts'
import { printList, toBatches, toCell } from './output.ts'

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
    example: 'user identities list ann@example.com',
    flags: { account: ACCOUNT },
    creates: false,
    async run (context) {
      const { user_id } = await requireUser(context)
      await printList(context, toBatches(await context.services.heldIdentities.list(user_id)), COLUMNS)
    }
  },

  'user identities remove': {
    summary: "Unlink a user's identity at another provider. Ends their sessions. The last sign-in method stays.",
    example: 'user identities remove ann@example.com --id ID',
    flags: { account: ACCOUNT, id: { ...value('ID', 'The id of the identity, from user identities list.'), required: true }, yes: YES },
    async run (context) {
      const { user_id, account } = await requireUser(context)
      const { heldIdentities } = context.services
      const identity_id = context.args.required('id')
      await confirm(context, `Unlink this identity from ${account}?`)
      await heldIdentities.removeOf(user_id, identity_id, OPERATOR)
      return { user_id, account, identity_id }
    }
  },

  'user identities replace': {
    summary: "Replace a user's identity at another provider. For a person who has another subject there. Ends their sessions.",
    example: 'user identities replace ann@example.com --upstream google --subject SUBJECT',
    flags: {
      account: ACCOUNT,
      upstream: required('ID', 'The id of the upstream.'),
      subject: required('SUBJECT', 'The new identity, as the event identity.refused and the page have it.'),
      yes: YES
    },
    async run (context) {
      const { services: { heldIdentities }, args } = context
      const { user_id, account } = await requireUser(context)
      const { data: expected } = checkInput(ReplaceIdentitySchema, { data: { upstream: args.required('upstream'), subject: args.required('subject') } })
      await confirm(context, `Replace the identity of ${account} at ${toCell(expected.upstream)}?`)
      await heldIdentities.replaceOf(user_id, expected, OPERATOR)
      return [{ user_id, account, ...expected }, 'The person now signs in with the provider.']
    }
  },

  'user email release': {
    summary: 'Take the address from a user. For an address that somebody else has by now. Ends their sessions. An account that is the address becomes the id of the user.',
    example: 'user email release ann@example.com',
    flags: { account: ACCOUNT, yes: YES },
    async run (context) {
      const { user_id, account: name } = await requireUser(context)
      await confirm(context, `Take the address from ${name}?`)
      const { account } = await context.services.accounts.releaseAddress(user_id, OPERATOR)
      return [{ user_id, account }, 'Sign-in methods stay. If the previous owner must not come back, disable the user.']
    }
  }
}
