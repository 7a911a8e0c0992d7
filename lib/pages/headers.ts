/** Sources of the style sheet; nothing else is loaded by a page. */
const STYLE_SOURCE = "'none'"

/** The origin of a URI as a CSP source: browsers hold a form's redirects to it too. */
function toSource (uri: string): string | undefined {
  if (!URL.canParse(uri)) return undefined
  const { protocol, host, origin } = new URL(uri)
  // An app's own scheme has no origin, and CSP knows no IPv6 address.
  if (!/^https?:$/.test(protocol) || host.startsWith('[')) return protocol
  return origin
}

/**
 * The headers of every page: nothing runs, nothing is framed, nothing is kept.
 * @param redirectUri where the answer to the page's form may lead in the end, beside this origin
 */
export function pageHeaders (redirectUri?: unknown): Record<string, string> {
  const target = typeof redirectUri === 'string' ? toSource(redirectUri) : undefined
  const form = ["'self'", ...(target === undefined ? [] : [target])].join(' ')
  return {
    'content-security-policy': `default-src 'none'; style-src ${STYLE_SOURCE}; form-action ${form}; frame-ancestors 'none'; base-uri 'none'`,
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    // `no-referrer` would have browsers send a form with the origin `null`, and the origin is checked.
    'referrer-policy': 'same-origin',
    'cache-control': 'no-store'
  }
}
