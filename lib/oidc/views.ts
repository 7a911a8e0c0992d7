import type { ErrorOut, KoaContextWithOIDC } from 'oidc-provider'
import { pageHeaders } from '../pages/headers.ts'
import { type Pages, renderPage } from '../pages/index.ts'

/** What a page calls a client. */
export function nameClient (client: { clientId: string, clientName?: string | undefined }): { name: string } {
  return { name: client.clientName ?? client.clientId }
}

const DEVICE_ERRORS: Record<string, string> = {
  NoCodeError: 'Type the code that the device shows.',
  NotFoundError: 'There is no such code. Look at the device again.',
  ExpiredError: 'The code has expired. Start again on the device.',
  AlreadyUsedError: 'The code was used already. Start again on the device.',
  AbortedError: 'The device was refused.'
}

/** What oidc-provider says of forms that came too late, in words for the person who sent one. */
const OVER = /^(xsrf token invalid|could not find .* details|authorization request has expired|interaction session .*)$/

const TOO_OLD = 'This page is too old, or was opened in another browser. Go back to the app and start again.'

const readSecret = (ctx: KoaContextWithOIDC) => String(ctx.oidc.session?.state?.secret)

function readClient (ctx: KoaContextWithOIDC): { client?: { name: string } } {
  return ctx.oidc.client === undefined ? {} : { client: nameClient(ctx.oidc.client) }
}

/**
 * The pages that oidc-provider asks for.
 * @param service what the operator calls the service
 */
export function createViews (service?: string) {
  function send<Name extends keyof Pages> (ctx: KoaContextWithOIDC, name: Name, data: Pages[Name], redirectUri?: unknown): void {
    ctx.set(pageHeaders(redirectUri))
    ctx.type = 'html'
    ctx.body = renderPage(name, data, service)
  }

  return {
    async userCode (ctx: KoaContextWithOIDC, _form: string, _out?: ErrorOut, error?: Error): Promise<void> {
      const session = ctx.oidc.session as { exp?: number, touched?: boolean } | undefined
      if (error !== undefined && session !== undefined && session.exp === undefined) {
        // A form without the cookie that it was made with: oidc-provider would save a session that it never began, and fail.
        session.touched = false
        send(ctx, 'error', { message: TOO_OLD })
        return
      }
      const typed = (error as { userCode?: string } | undefined)?.userCode ?? (ctx.state.userCode as string | undefined)
      const words = error === undefined ? undefined : DEVICE_ERRORS[error.name] ?? 'That did not work. Start again on the device.'
      send(ctx, 'device', {
        action: ctx.oidc.urlFor('code_verification'),
        xsrf: readSecret(ctx),
        ...(typed !== undefined && { code: typed }),
        ...(words !== undefined && { error: words })
      })
    },

    async confirmDevice (
      ctx: KoaContextWithOIDC, _form: string, client: { clientId: string, clientName?: string | undefined }, device: Record<string, unknown>, code: string
    ): Promise<void> {
      const { ip, ua } = device as { ip?: string, ua?: string }
      send(ctx, 'device-confirm', {
        action: ctx.oidc.urlFor('code_verification'),
        xsrf: readSecret(ctx),
        code,
        client: nameClient(client),
        device: { ...(ip !== undefined && { ip }), ...(ua !== undefined && { ua }) }
      })
    },

    async deviceDone (ctx: KoaContextWithOIDC): Promise<void> {
      send(ctx, 'device-done', { client: readClient(ctx).client ?? { name: 'the app' } })
    },

    async signOut (ctx: KoaContextWithOIDC): Promise<void> {
      send(
        ctx, 'sign-out',
        { action: ctx.oidc.urlFor('end_session_confirm'), xsrf: readSecret(ctx), ...readClient(ctx) },
        ctx.oidc.session?.state?.postLogoutRedirectUri
      )
    },

    async signedOut (ctx: KoaContextWithOIDC): Promise<void> {
      send(ctx, 'signed-out', readClient(ctx))
    },

    /** Nobody was signed in, so there is nothing to ask: oidc-provider would go on by a script. */
    async alreadySignedOut (ctx: KoaContextWithOIDC): Promise<void> {
      const { postLogoutRedirectUri, state } = (ctx.oidc.session?.state ?? {}) as { postLogoutRedirectUri?: string, state?: string }
      const next = postLogoutRedirectUri === undefined ? undefined : new URL(postLogoutRedirectUri)
      if (next !== undefined && state !== undefined) next.searchParams.set('state', state)
      if (next !== undefined) ctx.set('refresh', `0;url=${next.href}`)
      send(ctx, 'signed-out', { ...readClient(ctx), ...(next !== undefined && { next: next.href }) })
    },

    async error (ctx: KoaContextWithOIDC, out: ErrorOut): Promise<void> {
      const { error, error_description: description = 'The request is not one that can be answered.' } = out
      const over = OVER.test(description)
      send(ctx, 'error', { message: over ? TOO_OLD : description, code: error })
    }
  }
}

export type Views = ReturnType<typeof createViews>
