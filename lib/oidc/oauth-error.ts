import type { KoaContextWithOIDC, errors as OidcErrors } from 'oidc-provider'

/** An error of an OAuth endpoint (RFC 6749, 5.2). Its messages are those of oidc-provider, which serves the other endpoints. */
export class OAuthError extends Error {
  override readonly name = 'OAuthError'
  readonly statusCode: number
  readonly error: string
  readonly headers: Readonly<Record<string, string>>

  constructor (statusCode: number, error: string, description: string, headers: Record<string, string> = {}) {
    super(description)
    this.statusCode = statusCode
    this.error = error
    this.headers = headers
  }
}

/** The request comes from a page that may not read the answer, not even this error. */
export class OriginError extends OAuthError {
  constructor (origin: string, client_id: string) {
    super(400, 'invalid_request', `origin ${origin} not allowed for client: ${client_id}`)
  }
}

export function invalidRequest (description: string): OAuthError {
  return new OAuthError(400, 'invalid_request', description)
}

/** A caller who must wait. */
export function tooMany (what: string, milliseconds: number): OAuthError {
  const seconds = String(Math.max(1, Math.ceil(milliseconds / 1000)))
  return new OAuthError(429, 'temporarily_unavailable', `${what}, try again in ${seconds} s`, { 'retry-after': seconds })
}

/** The error as oidc-provider sends it. */
export function toProviderError (
  { error, message, statusCode, headers }: OAuthError,
  { CustomOIDCProviderError }: Pick<typeof OidcErrors, 'CustomOIDCProviderError'>,
  ctx: KoaContextWithOIDC | undefined
): Error {
  ctx?.set(headers)
  return Object.assign(new CustomOIDCProviderError(error, message), { status: statusCode, statusCode })
}
