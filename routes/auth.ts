import type { FastifyInstance } from 'fastify'
import { type TokenInfo, TokenInfoResponseSchema } from '../schemas/auth.ts'
import type { StrengthClaims } from '../lib/tokens/strength.ts'
import type { Caller } from '../lib/tokens/tokens.ts'
import { createRows, data } from './rows.ts'

function toTokenInfo ({ subject, user, client, token }: Caller, signIn: StrengthClaims): TokenInfo {
  return {
    user_id: user.user_id,
    account: user.account,
    name: user.name,
    roles: user.roles,
    client_id: client.clientId,
    scopes: token.scopes as string[],
    ...(token.audience !== undefined && { aud: token.audience }),
    ...(token.roles_withheld === true && { roles_withheld: true as const }),
    ...(subject === 'client' && { subject }),
    ...signIn
  }
}

/** Token sessions (docs/api.md). */
export async function authRoutes (app: FastifyInstance): Promise<void> {
  const { tokens } = app.identity
  const add = createRows(app, 'auth')

  add('getTokenInfo', 'GET /auth/tokeninfo', 'Get the user and the client of the access token', {
    answer: data(TokenInfoResponseSchema, 'The user and the client.'),
    run: ({ caller }) => toTokenInfo(caller, tokens.describeSignIn(caller))
  })

  add('logout', 'POST /auth/logout', 'End the token session: the access token and its linked refresh token', {
    run: ({ caller }) => tokens.revoke(caller.token)
  })
}
