import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Interaction } from '../lib/oidc/contract.ts'
import { LIMITS } from '../schemas/common.ts'
import { readCookie } from './cookies.ts'

const NAME = 'identity_app'

/** Seconds for which a browser knows the app of a sign-in: as long as somebody may come back to its page. */
const LIFE = 24 * 60 * 60

/** Stores the app of a sign-in in the browser, for that sign-in's pages only. The service forgets a sign-in when it is over. */
export function keepApp (reply: FastifyReply, { action, clientId }: Interaction, issuer: URL): void {
  const secure = issuer.protocol === 'https:' ? '; Secure' : ''
  reply.header('set-cookie', `${NAME}=${encodeURIComponent(clientId)}; Path=${action}; Max-Age=${LIFE}; HttpOnly; SameSite=Lax${secure}`)
}

/** A client id may be a URL, with characters that a cookie does not take. */
function decodeCookie (text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** The id of the app. It is only what the browser says, so it may decide on nothing but a link that anybody may follow. */
export function readApp (request: FastifyRequest): string | undefined {
  const client_id = decodeCookie(readCookie(request, NAME))
  return client_id !== undefined && client_id.length <= LIMITS.id ? client_id : undefined
}
