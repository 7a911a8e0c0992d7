import { hash } from 'node:crypto'
import type { Look } from './look.ts'

/**
 * Additional sources of `form-action`, besides this origin. Chromium applies `form-action` to every redirect after a form: the
 * redirect to the app, and the app's own redirects, possibly to other origins. So the scheme of the redirect URI is allowed with any
 * host. This is safe, because the client has registered the URI.
 */
function toFormSource (uri: unknown): string[] {
  if (typeof uri !== 'string' || !URL.canParse(uri)) return []
  return [new URL(uri).protocol]
}

interface HeaderOptions {
  look: Pick<Look, 'styleSource'>
  /** The URI that the page's form may redirect to, besides this origin. */
  redirectUri?: unknown
  /** Further ones: of other providers. */
  formTo?: readonly string[] | undefined
  /** The scripts that may run, as they are in the page. */
  scripts?: readonly string[]
  /** The URL of a script that may run. It may read pages of this origin. */
  scriptUrl?: string | undefined
}

/**
 * The headers of every page. They forbid other scripts than `scripts` and that at `scriptUrl`, loading, framing and caching. Images are
 * allowed as data URLs, because the logo and the icon are part of the page.
 */
export function pageHeaders ({ look, redirectUri, formTo = [], scripts: inline = [], scriptUrl }: HeaderOptions): Record<string, string> {
  const sources = [...inline.map((script) => `'sha256-${hash('sha256', script, 'base64')}'`), ...(scriptUrl === undefined ? [] : [scriptUrl])]
  const scripts = (sources.length > 0 ? `; script-src ${sources.join(' ')}` : '') + (scriptUrl === undefined ? '' : "; connect-src 'self'")
  const form = [...new Set(["'self'", ...[redirectUri, ...formTo].flatMap(toFormSource)])].join(' ')
  return {
    'content-security-policy': `default-src 'none'; style-src ${look.styleSource}; img-src data:${scripts}; form-action ${form}; frame-ancestors 'none'; base-uri 'none'`,
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    // With `no-referrer` browsers send `Origin: null` with a form, which checkOrigin refuses.
    'referrer-policy': 'same-origin',
    'cache-control': 'no-store'
  }
}
