import type { FastifyInstance } from 'fastify'
import type { AccessRule } from '../schemas/options.ts'
import { ForgotPasswordSchema, SetPasswordSchema, SignUpSchema, UndoAddressSchema, VerifyAddressSchema } from '../schemas/people.ts'
import { createRowCheck } from '../plugins/access.ts'
import { findAskedLanguage } from '../plugins/mail-language.ts'
import { toAnonymousTurn } from '../plugins/turns.ts'
import { toAsker } from './people-pages.ts'
import { createRows } from './rows.ts'
import type { RouteSettings } from './settings.ts'

interface PeopleSettings extends Pick<RouteSettings, 'linkLimit'> {
  access: Record<string, AccessRule>
}

/** Public routes: they request a mailed link, or use one. */
export async function peopleRoutes (app: FastifyInstance, { linkLimit: limit, access }: PeopleSettings): Promise<void> {
  const { accounts } = app.identity
  const checkVerifier = createRowCheck(app, 'verifyAddress', access)
  const add = createRows(app, 'people')
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('cache-control', 'no-store')
    done()
  })

  add('forgotPassword', 'POST /auth/forgot', 'Request an email with a link that sets a new password', {
    description: 'The response is the same whether or not the account exists.',
    body: ForgotPasswordSchema,
    errors: ['ErrNotFound', 'ErrLimit'],
    run: ({ request, body }) => accounts.forgotPassword(body.data.account, toAsker(request))
  })

  add('resetPassword', 'POST /auth/reset', 'Set the password with a link: of a reset, an invitation or a sign-up', {
    description: 'The link stays valid if the password is refused. A new password revokes all codes, tokens and other links of the user.',
    body: SetPasswordSchema,
    errors: ['ErrTicket', 'ErrLimit'],
    limit,
    async run ({ request, body: { data: { token, password, name } } }) {
      const language = findAskedLanguage(request)
      await accounts.setPassword(token, password, { turn: toAnonymousTurn(request), language, name })
    }
  })

  add('signUp', 'POST /auth/sign-up', 'Request an email with a link that creates an account', {
    description: 'The account is created when a password is sent with the link to /auth/reset. The response is the same whether or not ' +
      'the address has an account.',
    body: SignUpSchema,
    errors: ['ErrNotFound', 'ErrLimit'],
    async run ({ request, body: { data: { email, clientId, returnTo } } }) {
      await accounts.signUp(email, toAsker(request), await accounts.checkReturnTo(clientId, returnTo))
    }
  })

  add('verifyAddress', 'POST /auth/verify', 'Verify an address with a link: the current one, or a new one', {
    description: 'The link of a change of the address needs a token of the account that asked for it. Without one, nothing changes and ' +
      'the link can still be used. Other links need no token.',
    body: VerifyAddressSchema,
    errors: ['ErrTicket', 'ErrLimit'],
    limit,
    async run ({ request, reply, body: { data: { token } } }) {
      const { purpose } = await accounts.inspectAddressLink(token)
      if (purpose === 'change') await checkVerifier(request, reply)
      await accounts.verifyAddress(token, request.hasCaller ? request.caller.user.user_id : undefined)
    }
  })

  add('undoAddressChange', 'POST /auth/undo', 'Undo what was added to an account with a link', {
    description: 'Removes every way in that was added since the earliest act that can still be undone, restores the address from before the act of ' +
      'the link, revokes all codes, tokens and other links of the user, and emails a link that sets a new password.',
    body: UndoAddressSchema,
    errors: ['ErrTicket', 'ErrLimit'],
    limit,
    run: async ({ body }) => { await accounts.undo(body.data.token) }
  })
}
