import type { FastifyReply, FastifyRequest } from 'fastify'

/**
 * The cookie of a browser in which somebody has signed out. Sign-out stays local: the provider still knows them, so without a question the
 * next sign-in would be theirs again, whoever sits there now. The browser forgets it when it ends.
 */
export function createSignedOutCookie (issuer: URL) {
  const secure = issuer.protocol === 'https:'
  const name = secure ? '__Host-identity_signed_out' : 'identity_signed_out'
  const attributes = `Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
  const pattern = new RegExp(`(?:^|;\\s*)${name}=1(?:;|$)`)
  return {
    has: ({ headers }: FastifyRequest): boolean => pattern.test(headers.cookie ?? ''),
    set: (reply: FastifyReply): void => { reply.header('set-cookie', `${name}=1; ${attributes}`) },
    /** Somebody has signed in with a provider, who was asked for an account. */
    end: (reply: FastifyReply): void => { reply.header('set-cookie', `${name}=; ${attributes}; Max-Age=0`) }
  }
}
