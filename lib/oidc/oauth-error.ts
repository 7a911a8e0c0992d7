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
