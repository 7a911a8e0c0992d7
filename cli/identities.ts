import { type Identity, ReplaceIdentitySchema } from '../schemas/identity.ts'
import { required, value } from './args.ts'
import { ACCOUNT, OPERATOR, type Commands } from './command.ts'
import { checkInput, requireUser } from './input.ts'
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
      const { heldIdentities } = context.services
      const identity_id = context.args.required('id')
      await heldIdentities.removeOf(user_id, identity_id, OPERATOR)
      return { user_id, account, identity_id }
    }
  },

  'user identities replace': {
    summary: 'Let another identity take the place of the one that a user has at a provider, because the same person has another subject there now. Ends their sessions.',
    flags: {
      account: ACCOUNT,
      upstream: required('ID', 'The id of the upstream.'),
      subject: required('SUBJECT', 'The new identity, as the event identity.refused and the page have it.')
    },
    async run (context) {
      const { services: { heldIdentities }, args } = context
      const { user_id, account } = await requireUser(context)
      const { data: expected } = checkInput(ReplaceIdentitySchema, { data: { upstream: args.required('upstream'), subject: args.required('subject') } })
      await heldIdentities.replaceOf(user_id, expected, OPERATOR)
      return [{ user_id, account, ...expected }, 'The person now signs in with the provider.']
    }
  },

  'user email release': {
    summary: 'Take the address from a user, because somebody else has it now, and end their sessions. A name that is the address becomes the id of the user.',
    flags: { account: ACCOUNT },
    async run (context) {
      const { user_id } = await requireUser(context)
      const { account } = await context.services.accounts.releaseAddress(user_id, OPERATOR)
      return [{ user_id, account }, 'Ways to sign in stay. If the former owner must not come back, disable the user.']
    }
  }
}
