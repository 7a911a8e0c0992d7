/** The issuer identifier of tokens and metadata (RFC 8414, 2), without a trailing slash. */
export function toIssuer ({ href }: URL): string {
  return href.replace(/\/$/, '')
}

/** The path of the service's own API as browsers see it. A proxy may strip the issuer's path before it forwards a request. */
export function toApiPath ({ pathname }: URL): string {
  return `${pathname.replace(/\/$/, '')}/api/v1`
}

/** The URI of the service's own API, which is the audience of its tokens. */
export function toApiUri (issuer: URL): string {
  return `${toIssuer(issuer)}/api/v1`
}

/** The path of the pages of sign-in and consent, below that of the API. */
export const INTERACTION = '/auth/interaction'

/** Whether a text can be the id of an interaction. URLs of forms and redirects are made of it. */
export const isInteractionId = (text: string): boolean => /^[\w-]{1,64}$/.test(text)
