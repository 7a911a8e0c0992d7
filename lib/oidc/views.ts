import type { ErrorOut, KoaContextWithOIDC } from 'oidc-provider'
import type { PageWay } from '../pages/contract.ts'
import { pageHeaders } from '../pages/headers.ts'
import { type Pages, renderPage } from '../pages/index.ts'
import { CHOICE, CHOICE_COOKIE, LANGUAGE_COOKIE, joinLocales } from '../pages/language-cookie.ts'
import type { Look } from '../pages/look.ts'
import type { Message } from '../pages/texts/en.ts'
import { type OurClient, toOurs } from './context.ts'
import { formatUserCode } from './user-code.ts'

/** The client's name on a page. */
function nameClient (client: { clientId: string, clientName?: string | undefined }): { name: string } {
  return { name: client.clientName ?? client.clientId }
}

const DEVICE_ERRORS: Record<string, Message> = {
  NoCodeError: ({ device }) => device.noCode,
  NotFoundError: ({ device }) => device.unknownCode,
  ExpiredError: ({ device }) => device.expiredCode,
  AlreadyUsedError: ({ device }) => device.usedCode,
  AbortedError: ({ device }) => device.refused
}

const DEVICE_FAILED: Message = ({ device }) => device.failed

/** oidc-provider's messages for forms of an interaction that has ended or expired. */
const STALE_FORM = /^(xsrf token invalid|could not find .* details|authorization request has expired|interaction session .*)$/

const PAGE_EXPIRED: Message = ({ errors }) => errors.pageExpired

const readXsrfToken = (ctx: KoaContextWithOIDC) => String(ctx.oidc.session?.state?.secret)

function readClient (ctx: KoaContextWithOIDC): { client?: { name: string } } {
  return ctx.oidc.client === undefined ? {} : { client: nameClient(ctx.oidc.client) }
}

/** The most characters of a refused redirect URI that the page and the log repeat. */
const SHOWN_URI = 300

/** Control characters, and those that change the writing direction. Anyone may write a redirect URI into a link. */
// eslint-disable-next-line no-control-regex
const UNSAFE = /[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069]/g

/** The redirect URI of a request that was refused because of it, as the client sent it; undefined for any other error. */
export function findRefusedUri (error: string, params: Record<string, unknown> | undefined): string | undefined {
  const { redirect_uri: uri } = params ?? {}
  return error === 'invalid_redirect_uri' && typeof uri === 'string' ? uri.slice(0, SHOWN_URI).replace(UNSAFE, '?') : undefined
}

/** The way back to the client's app: the origin of a redirect URI that is a website. Pages link to it, and never redirect to it. */
export function findWay (client: Pick<OurClient, 'clientId' | 'clientName' | 'registered_uris' | 'vouched'>): PageWay | undefined {
  const [uri] = client.registered_uris.filter((registered) => /^https?:/.test(registered))
  return uri === undefined ? undefined : { client: nameClient(client), uri: `${new URL(uri).origin}/`, vouched: client.vouched }
}

/** The pages that oidc-provider renders through us. */
export function createViews (look: Look) {
  function send<Name extends keyof Pages> (ctx: KoaContextWithOIDC, name: Name, data: Pages[Name], redirectUri?: unknown): void {
    ctx.set(pageHeaders({ look, redirectUri }))
    ctx.type = 'html'
    const readOwn = (cookie: string) => ctx.cookies.get(cookie, { signed: false })
    const [, query = ''] = ctx.originalUrl.split('?', 2)
    const chosen = new URLSearchParams(query).get(CHOICE)
    const locales = joinLocales(chosen, readOwn(CHOICE_COOKIE), ctx.oidc?.params?.ui_locales ?? ctx.query.ui_locales, readOwn(LANGUAGE_COOKIE))
    ctx.body = renderPage(name, data, look, look.languages.choose(locales, ctx.get('accept-language')), ctx.method === 'GET' ? query : undefined)
  }

  return {
    async userCode (ctx: KoaContextWithOIDC, _form: string, _out?: ErrorOut, error?: Error): Promise<void> {
      const session = ctx.oidc.session as { exp?: number, touched?: boolean } | undefined
      if (error !== undefined && session !== undefined && session.exp === undefined) {
        // The form came without its session cookie. oidc-provider would fail to save the empty session.
        session.touched = false
        send(ctx, 'error', { message: PAGE_EXPIRED })
        return
      }
      const page = { action: ctx.oidc.urlFor('code_verification'), xsrf: readXsrfToken(ctx) }
      const linked = formatUserCode(String(ctx.state.userCode ?? ''))
      if (error === undefined && linked !== undefined) {
        send(ctx, 'device-compare', { ...page, code: linked })
        return
      }
      const typed = (error as { userCode?: string } | undefined)?.userCode
      const message = error === undefined ? undefined : DEVICE_ERRORS[error.name] ?? DEVICE_FAILED
      send(ctx, 'device', {
        ...page,
        code: typed,
        error: message
      })
    },

    /** The answer to a form without the field by which ours go on, such as one of an earlier release. */
    async compareCode (ctx: KoaContextWithOIDC, _form: string, _client: object, _device: object, code: string): Promise<void> {
      send(ctx, 'device-compare', { action: ctx.oidc.urlFor('code_verification'), xsrf: readXsrfToken(ctx), code })
    },

    async deviceDone (ctx: KoaContextWithOIDC): Promise<void> {
      send(ctx, 'device-done', readClient(ctx))
    },

    async signOut (ctx: KoaContextWithOIDC): Promise<void> {
      send(
        ctx, 'sign-out',
        { action: ctx.oidc.urlFor('end_session_confirm'), xsrf: readXsrfToken(ctx), ...readClient(ctx) },
        ctx.oidc.session?.state?.postLogoutRedirectUri
      )
    },

    async signedOut (ctx: KoaContextWithOIDC): Promise<void> {
      send(ctx, 'signed-out', readClient(ctx))
    },

    /**
     * Replaces oidc-provider's page for a browser without a sign-in, which redirects by a script. Anyone may register a client,
     * sign in to it and link to this page, so the browser goes on by itself only for a client that the operator vouches for. For
     * other clients, the page has a link.
     */
    async alreadySignedOut (ctx: KoaContextWithOIDC): Promise<void> {
      const { postLogoutRedirectUri, state } = (ctx.oidc.session?.state ?? {}) as { postLogoutRedirectUri?: string, state?: string }
      const next = postLogoutRedirectUri === undefined ? undefined : new URL(postLogoutRedirectUri)
      if (next !== undefined && state !== undefined) next.searchParams.set('state', state)
      const vouched = toOurs(ctx).client?.vouched === true
      if (next !== undefined && vouched) ctx.set('refresh', `0;url=${next.href}`)
      send(ctx, 'signed-out', { ...readClient(ctx), next: next === undefined ? undefined : { uri: next.href, vouched } })
    },

    async error (ctx: KoaContextWithOIDC, out: ErrorOut): Promise<void> {
      const { error, error_description: description = 'The request cannot be answered.' } = out
      const { client } = toOurs(ctx)
      const way = client === undefined ? undefined : findWay(client)
      const back = way !== undefined && { back: way }
      if (STALE_FORM.test(description)) send(ctx, 'error', { message: PAGE_EXPIRED, code: error, ...back })
      else {
        const refused = findRefusedUri(error, ctx.oidc?.params)
        const detail = refused === undefined ? description : `${description}: ${refused}`
        send(ctx, 'error', { message: ({ errors }) => errors.refused, code: error, detail, ...back })
      }
    }
  }
}

export type Views = ReturnType<typeof createViews>
