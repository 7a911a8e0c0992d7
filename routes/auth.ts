import type { FastifyInstance } from 'fastify'
import { type TokenInfo, TokenInfoResponseSchema } from '../schemas/auth.ts'
import { defined } from '../lib/defined.ts'
import type { StrengthClaims } from '../lib/tokens/strength.ts'
import type { Caller } from '../lib/tokens/tokens.ts'
import { type Answer, createRows, data } from './rows.ts'

function toTokenInfo ({ subject, user, client, token }: Caller, signIn: StrengthClaims): TokenInfo {
  return defined({
    user_id: user.user_id,
    account: user.account,
    name: user.name,
    roles: user.roles,
    client_id: client.clientId,
    scopes: [...token.scopes],
    aud: token.audience,
    roles_withheld: token.roles_withheld === true ? true as const : undefined,
    subject: subject === 'client' ? subject : undefined,
    token_id: token.name === undefined ? undefined : token.id,
    token_name: token.name,
    ...signIn
  })
}

/** Token sessions (docs/api.md). */
export async function authRoutes (app: FastifyInstance): Promise<void> {
  const { tokens } = app.identity
  const add = createRows(app, 'auth')

  const answer: Answer<string> = {
    ...data(TokenInfoResponseSchema, 'The user and the client.'),
    write: ({ reply }, text) => reply.type('application/json; charset=utf-8').send(text)
  }
  /** Answers about callers, which requests with the same token share. */
  const kept = new WeakMap<Caller, { auth_time: number | undefined, text: string }>()

  add('getTokenInfo', 'GET /auth/tokeninfo', 'Get the user and the client of the access token', {
    answer,
    run ({ caller, reply }) {
      const signIn = tokens.describeSignIn(caller)
      let found = kept.get(caller)
      if (found === undefined || found.auth_time !== signIn.auth_time) {
        found = { auth_time: signIn.auth_time, text: reply.serialize({ data: toTokenInfo(caller, signIn) }) as string }
        kept.set(caller, found)
      }
      return found.text
    }
  })

  add('logout', 'POST /auth/logout', 'End the token session: the access token and its linked refresh token', {
    run: ({ caller }) => tokens.revoke(caller.token)
  })
}
