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

export function invalidRequest (description: string): OAuthError {
  return new OAuthError(400, 'invalid_request', description)
}
