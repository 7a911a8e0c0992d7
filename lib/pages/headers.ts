import { STYLE_SOURCE } from './style.ts'

/**
 * What a form may lead to beside this origin. Chromium holds every redirect that follows a form to `form-action`: the one
 * to the app, and those by which the app sends its user on, perhaps to another origin of its own. So the scheme is let
 * in and no more is said; who else could be named here chose the URI himself.
 */
function toFormSource (uri: unknown): string[] {
  if (typeof uri !== 'string' || !URL.canParse(uri)) return []
  return [new URL(uri).protocol]
}

/**
 * The headers of every page: nothing runs, nothing is loaded, nothing is framed, nothing is kept.
 * @param redirectUri where the answer to the page's form may lead in the end, beside this origin
 */
export function pageHeaders (redirectUri?: unknown): Record<string, string> {
  const form = ["'self'", ...toFormSource(redirectUri)].join(' ')
  return {
    'content-security-policy': `default-src 'none'; style-src ${STYLE_SOURCE}; form-action ${form}; frame-ancestors 'none'; base-uri 'none'`,
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    // `no-referrer` would have browsers send a form with the origin `null`, and the origin is checked.
    'referrer-policy': 'same-origin',
    'cache-control': 'no-store'
  }
}
