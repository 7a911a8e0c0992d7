import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { AccessRule } from '../schemas/options.ts'
import { ForgotPasswordSchema, SetPasswordSchema, SignUpSchema, UndoAddressSchema, VerifyAddressSchema } from '../schemas/people.ts'
import { createRowCheck } from '../plugins/access.ts'
import { findAskedLanguage } from '../plugins/mail-language.ts'
import { toAnonymousTurn } from '../plugins/turns.ts'
import { toAsker } from './people-pages.ts'
import { NoContentSchema, publicErrors, writeErrors } from './responses.ts'
import type { RouteSettings } from './settings.ts'

const tags = ['people']

/** Public routes: they request a mailed link, or use one. */
export const peopleRoutes: FastifyPluginAsyncTypebox<Pick<RouteSettings, 'linkLimit'> & { access: Record<string, AccessRule> }> = async (app, { linkLimit: preHandler, access }) => {
  const { accounts } = app.identity
  const checkVerifier = createRowCheck(app, 'verifyAddress', access)
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('cache-control', 'no-store')
    done()
  })

  app.post('/auth/forgot', {
    schema: {
      operationId: 'forgotPassword',
      tags,
      summary: 'Have a link mailed that sets a new password',
      description: 'The answer is the same whether or not there is such an account.',
      body: ForgotPasswordSchema,
      response: { 204: NoContentSchema, ...publicErrors('ErrNotFound', 'ErrLimit') }
    }
  }, async (request, reply) => {
    await accounts.forgotPassword(request.body.data.account, toAsker(request))
    return reply.code(204).send(undefined)
  })

  app.post('/auth/reset', {
    preHandler,
    schema: {
      operationId: 'resetPassword',
      tags,
      summary: 'Set the password with a link: of a reset, an invitation or a sign-up',
      description: 'A refused password spends nothing. A new one revokes all codes, tokens and other links of the user.',
      body: SetPasswordSchema,
      response: { 204: NoContentSchema, ...publicErrors('ErrTicket', 'ErrLimit') }
    }
  }, async (request, reply) => {
    const { token, password, name } = request.body.data
    await accounts.setPassword(token, password, { turn: toAnonymousTurn(request), language: findAskedLanguage(request), ...(name !== undefined && { name }) })
    return reply.code(204).send(undefined)
  })

  app.post('/auth/sign-up', {
    schema: {
      operationId: 'signUp',
      tags,
      summary: 'Have a link mailed that makes an account',
      description: 'There is no account before somebody sends a password with the link, to /auth/reset. The answer is the same whether or not there is one with this address.',
      body: SignUpSchema,
      response: { 204: NoContentSchema, ...publicErrors('ErrNotFound', 'ErrLimit') }
    }
  }, async (request, reply) => {
    const { email, clientId, returnTo } = request.body.data
    await accounts.signUp(email, toAsker(request), await accounts.checkReturnTo(clientId, returnTo))
    return reply.code(204).send(undefined)
  })

  app.post('/auth/verify', {
    config: { access: 'verifyAddress' },
    preHandler,
    schema: {
      operationId: 'verifyAddress',
      tags,
      summary: 'Verify an address with a link: the present one, or a new one',
      description: 'The link of a change of the address needs a token of the account that asked for it. Without one, nothing changes and the link can still be used. Other links need no token.',
      body: VerifyAddressSchema,
      response: { 204: NoContentSchema, ...writeErrors('ErrTicket', 'ErrLimit') }
    }
  }, async (request, reply) => {
    const { token } = request.body.data
    const { purpose } = await accounts.inspectAddressLink(token)
    if (purpose === 'change') await checkVerifier(request, reply)
    await accounts.verifyAddress(token, request.hasCaller ? request.caller.user.user_id : undefined)
    return reply.code(204).send(undefined)
  })

  app.post('/auth/undo', {
    preHandler,
    schema: {
      operationId: 'undoAddressChange',
      tags,
      summary: 'Undo a change of the address with a link',
      description: 'Restores the former address, revokes all codes, tokens and other links of the user, and mails a link that sets a new password.',
      body: UndoAddressSchema,
      response: { 204: NoContentSchema, ...publicErrors('ErrTicket', 'ErrLimit') }
    }
  }, async (request, reply) => {
    await accounts.undoChange(request.body.data.token)
    return reply.code(204).send(undefined)
  })
}
