import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { pageHeaders } from '../pages/headers.ts'
import type { Look } from '../pages/look.ts'
import { POLL_INTERVAL } from './codes.ts'
import { findTooLong } from './parameter-limits.ts'
import { ROUTES } from './routes.ts'
import type { Views } from './views.ts'

type Middleware = Parameters<Provider['use']>[0]

/** Corrects answers of oidc-provider where it has no option for them. */
function correctAnswer (ctx: KoaContextWithOIDC): void {
  if (ctx.status !== 200) return
  // RFC 7009, 2.2: the answer has no content. Libraries refuse the text/plain of an empty text.
  if (ctx.oidc?.route === 'revocation') ctx.remove('content-type')
  if (ctx.oidc?.route === 'device_authorization') ctx.body = { ...ctx.body as object, interval: POLL_INTERVAL }
}

/** The page of `response_mode=form_post` is oidc-provider's. It submits its form by a script, the only one of all pages. */
function protectFormPost (ctx: KoaContextWithOIDC, look: Look): void {
  if (ctx.oidc?.params?.response_mode !== 'form_post' || typeof ctx.body !== 'string' || ctx.response.is('html') === false) return
  const [, script] = /<script>([^<]*)<\/script>/.exec(ctx.body) ?? []
  ctx.set(pageHeaders({ look, redirectUri: ctx.oidc.params.redirect_uri, scripts: script === undefined ? [] : [script] }))
}

/**
 * The middleware around oidc-provider's own.
 * @param base path of the API as the app sees it
 * @param mount the path that browsers see before it
 */
export function createMiddleware (base: string, mount: string, views: Views, look: Look): Middleware {
  return async function correct (plain, next) {
    const ctx = plain as KoaContextWithOIDC
    ctx.mountPath = mount
    // views.ts asks the user to compare the code of a link. oidc-provider's own page would submit it by script.
    if (ctx.method === 'GET' && ctx.path === base + ROUTES.code_verification && typeof ctx.query.user_code === 'string') {
      ctx.state.userCode = ctx.query.user_code.slice(0, 64)
      ctx.query = {}
    }
    const tooLong = ctx.path === base + ROUTES.end_session ? findTooLong(ctx.query) : undefined
    if (tooLong !== undefined) {
      ctx.status = 400
      await views.error(ctx, { error: 'invalid_request', error_description: tooLong.reason })
      return
    }
    await next()
    correctAnswer(ctx)
    protectFormPost(ctx, look)
    const isSignOut = ctx.oidc?.route === 'end_session' && ctx.status === 200
    if (isSignOut && ctx.oidc.session?.accountId === undefined) await views.alreadySignedOut(ctx)
  }
}
