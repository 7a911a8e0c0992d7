import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type TokenInfo, TokenInfoResponseSchema } from '../schemas/auth.ts'
import type { Caller } from '../lib/tokens/tokens.ts'
import { requireCaller } from '../plugins/auth.ts'
import { NoContentSchema, errors, json, writeErrors } from './responses.ts'

const tags = ['auth']

function toTokenInfo ({ subject, user, client, token }: Caller): TokenInfo {
  return {
    user_id: user.user_id,
    account: user.account,
    name: user.name,
    roles: user.roles,
    client_id: client.clientId,
    scopes: token.scopes as string[],
    ...(token.audience !== undefined && { aud: token.audience }),
    ...(token.roles_withheld === true && { roles_withheld: true as const }),
    ...(subject === 'client' && { subject })
  }
}

/** Token sessions (docs/api.md). */
export const authRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { tokens } = app.identity

  app.get('/auth/tokeninfo', {
    config: { access: 'getTokenInfo', crossOrigin: true },
    schema: {
      operationId: 'getTokenInfo',
      tags,
      summary: 'Get the user and the client of the access token',
      response: { 200: json(TokenInfoResponseSchema, 'The user and the client.'), ...errors() }
    }
  }, (request, reply) => {
    reply.send({ data: toTokenInfo(requireCaller(request)) })
  })

  app.post('/auth/logout', {
    config: { access: 'logout', crossOrigin: true },
    schema: {
      operationId: 'logout',
      tags,
      summary: 'End the token session: the access token and its linked refresh token',
      response: { 204: NoContentSchema, ...writeErrors() }
    }
  }, async (request, reply) => {
    await tokens.revoke(requireCaller(request).token)
    return reply.code(204).send(undefined)
  })
}
