import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ChangeAddressSchema, DeleteProfileSchema, InviteUserSchema, InvitedSchema, RecoveredSchema } from '../schemas/people.ts'
import { UserParamsSchema } from '../schemas/user.ts'
import { requireCaller, toActor } from '../plugins/auth.ts'
import { chooseMailLanguage, findAskedLanguage } from '../plugins/mail-language.ts'
import { NoContentSchema, errors, json, writeErrors } from './responses.ts'
import type { RouteSettings } from './settings.ts'

const tags = ['people']

/** Requests of callers about their own accounts, and of administrators and managers about those of others. */
export const guardedPeopleRoutes: FastifyPluginAsyncTypebox<Pick<RouteSettings, 'writeLimit'>> = async (app, { writeLimit }) => {
  const { accounts, users, tokens } = app.identity
  app.addHook('preHandler', writeLimit)

  app.post('/auth/verify/send', {
    config: { access: 'sendVerification' },
    schema: {
      operationId: 'sendVerification',
      tags,
      summary: "Have a link mailed that verifies the caller's address",
      response: { 204: NoContentSchema, ...errors('ErrNotFound', 'ErrLimit') }
    }
  }, async (request, reply) => {
    await accounts.sendVerification(requireCaller(request).user.user_id, chooseMailLanguage(request))
    return reply.code(204).send(undefined)
  })

  app.post('/user/email', {
    config: { access: 'changeAddress' },
    schema: {
      operationId: 'changeAddress',
      tags,
      summary: "Have a link mailed to a new address, which makes it the caller's",
      description: 'Nothing changes before the link is used. The former address then gets a mail with which the change can be undone for 72 hours.',
      body: ChangeAddressSchema,
      response: { 204: NoContentSchema, ...writeErrors('ErrNotFound', 'ErrLimit') }
    }
  }, async (request, reply) => {
    const { email, current_password } = request.body.data
    const actor = toActor(request, tokens)
    await users.confirmPassword(actor, current_password)
    await accounts.changeAddress(actor.user_id, email, chooseMailLanguage(request))
    return reply.code(204).send(undefined)
  })

  app.post('/user/invite', {
    config: { access: 'inviteUser' },
    schema: {
      operationId: 'inviteUser',
      tags,
      summary: 'Create a user who chooses their password with a link',
      description: 'A user who has not accepted gets another link, and stays as they are.',
      body: InviteUserSchema,
      response: { 200: json(InvitedSchema, 'The id of the user, and the link where it does not go by mail.'), ...writeErrors('USER_EXIST', 'ErrNotFound', 'ErrLimit') }
    }
  }, async (request) => {
    const { clientId, returnTo, account, name, roles } = request.body.data
    const checked = await accounts.checkReturnTo(clientId, returnTo)
    const language = findAskedLanguage(request)
    const invitation = { account, ...(language !== undefined && { language }), ...(name !== undefined && { name }), ...(roles !== undefined && { roles }), ...checked }
    return { data: await accounts.inviteUser(invitation as Parameters<typeof accounts.inviteUser>[0], toActor(request, tokens)) }
  })

  app.post('/user/:userId/recovery', {
    config: { access: 'recoverUser' },
    schema: {
      operationId: 'recoverUser',
      tags,
      summary: 'Have a user set a new password',
      description: 'The link goes by mail. Without mail, and for a user without an address, an administrator gets it to hand over.',
      params: UserParamsSchema,
      response: { 200: json(RecoveredSchema, 'Whether the link goes by mail, and otherwise the link.'), ...errors('ErrNotFound', 'ErrLimit') }
    }
  }, async (request) => ({ data: await accounts.recoverUser(request.params.userId, toActor(request, tokens), chooseMailLanguage(request)) }))

  app.delete('/user', {
    config: { access: 'deleteProfile' },
    schema: {
      operationId: 'deleteProfile',
      tags,
      summary: "Delete the caller's own account, with their clients",
      body: DeleteProfileSchema,
      response: { 204: NoContentSchema, ...writeErrors('ErrNotFound', 'ErrLimit') }
    }
  }, async (request, reply) => {
    const actor = toActor(request, tokens)
    await users.confirmPassword(actor, request.body.data.current_password)
    await accounts.deleteOwn(actor.user_id)
    return reply.code(204).send(undefined)
  })
}
