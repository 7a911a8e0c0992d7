import type { KoaContextWithOIDC } from 'oidc-provider'
import { toOurs } from './context.ts'
import { splitScopes } from './scopes.ts'

/**
 * Keeps an error on our page, which links to the app, when it is found before the person has seen a page and the operator does not vouch for
 * the client: otherwise anybody could register one and send people on by a link to this service (RFC 9700, 4.11.2). With `prompt=none` the
 * app asks what it cannot show, and waits for the answer. oidc-provider reads `allow_redirect` after it has told of the error.
 */
export function keepOnPage (ctx: KoaContextWithOIDC, error: Error): void {
  const { route, params } = ctx.oidc
  const isSilent = splitScopes(params?.prompt).includes('none')
  if (route === 'authorization' && toOurs(ctx).client?.vouched === false && !isSilent) Object.assign(error, { allow_redirect: false })
}
