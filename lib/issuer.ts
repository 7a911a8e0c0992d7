/** The issuer identifier of tokens and metadata (RFC 8414, 2). It has no slash at its end. */
export function toIssuer ({ href }: URL): string {
  return href.replace(/\/$/, '')
}

/** The path of the service's own API as browsers see it: a proxy may strip the issuer's. */
export function toApiPath ({ pathname }: URL): string {
  return `${pathname.replace(/\/$/, '')}/api/v1`
}

/** The URI of the service's own API, which is the audience of its tokens. */
export function toApiUri (issuer: URL): string {
  return `${toIssuer(issuer)}/api/v1`
}
