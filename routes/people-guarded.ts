import type { FastifyInstance } from 'fastify'
import { AddressReleasedSchema, ChangeAddressSchema, DeleteProfileSchema, InviteUserSchema, InvitedSchema, RecoveredSchema } from '../schemas/people.ts'
import { chooseMailLanguage, findAskedLanguage } from '../plugins/mail-language.ts'
import { createRows, data } from './rows.ts'
import type { RouteSettings } from './settings.ts'

/** Requests of callers about their own accounts, and of administrators and managers about those of others. */
export async function guardedPeopleRoutes (app: FastifyInstance, { writeLimit }: Pick<RouteSettings, 'writeLimit'>): Promise<void> {
  const { accounts, users } = app.identity
  const add = createRows(app, 'people', { writeLimit })

  add('sendVerification', 'POST /auth/verify/send', "Request an email with a link that verifies the caller's address", {
    errors: ['ErrNotFound'],
    hasBody: false,
    run: ({ request, caller }) => accounts.sendVerification(caller.user.user_id, chooseMailLanguage(request))
  })

  add('changeAddress', 'POST /user/email', "Request a change of the caller's address, by a link emailed to the new one", {
    description: 'Nothing changes before the link is used. The previous address then gets an email with which the change can be undone for ' +
      '72 hours.',
    body: ChangeAddressSchema,
    errors: ['ErrNotFound'],
    async run ({ request, body: { data: { email, current_password } }, actor }) {
      const { confirm } = await users.confirm(actor, { password: current_password })
      await accounts.changeAddress(actor.user_id, email, chooseMailLanguage(request), confirm)
    }
  })

  add('inviteUser', 'POST /user/invite', 'Create a user who chooses their password with a link', {
    description: 'A user who has not accepted yet gets another link, and is not changed.',
    body: InviteUserSchema,
    answer: data(InvitedSchema, 'The id of the user, and the link if it was not emailed.'),
    errors: ['USER_EXIST', 'ErrNotFound'],
    async run ({ request, body: { data: { clientId, returnTo, ...user } }, actor }) {
      const checked = await accounts.checkReturnTo(clientId, returnTo)
      return await accounts.inviteUser({ ...user, language: findAskedLanguage(request), ...checked }, actor)
    }
  })

  add('recoverUser', 'POST /user/:userId/recovery', 'Send a user a link that sets a new password', {
    description: 'The link is emailed. If the service has no email, or the user no address, an administrator gets it to hand over.',
    answer: data(RecoveredSchema, 'Whether the link was emailed, and otherwise the link.'),
    errors: ['ErrNotFound'],
    hasBody: false,
    run: ({ request, params, actor }) => accounts.recoverUser(params.userId, actor, chooseMailLanguage(request))
  })

  add('releaseAddress', 'POST /user/:userId/email/release', 'Take the address from a user, because somebody else has it now', {
    description: 'Also a name that is the address: the user is then called by their id in lower case. It ends all sessions, codes, tokens ' +
      'and open links of the user, and every undo that would bring the address back. Sign-in methods stay, and an upstream with `only` that ' +
      'claims the user goes on claiming them, until an administrator sets an address. Administrators cannot release their own.',
    answer: data(AddressReleasedSchema, 'What the user is called now.'),
    errors: ['ErrNotFound'],
    hasBody: false,
    run: ({ params, actor }) => accounts.releaseAddress(params.userId, actor)
  })

  add('deleteProfile', 'DELETE /user', "Delete the caller's own account, with their clients", {
    body: DeleteProfileSchema,
    errors: ['ErrNotFound'],
    async run ({ body, actor }) {
      await accounts.deleteOwn(actor.user_id, await users.confirm(actor, { password: body.data.current_password }))
    }
  })
}
