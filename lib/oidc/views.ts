import { type ErrorOut, type KoaContextWithOIDC } from 'oidc-provider'
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

function send<Name extends keyof Pages> (ctx: KoaContextWithOIDC, name: Name, data: Pages[Name], redirectUri?: unknown): void {
  ctx.set(pageHeaders(redirectUri))
  ctx.type = 'html'
  ctx.body = renderPage(name, data)
}

const readSecret = (ctx: KoaContextWithOIDC) => String(ctx.oidc.session?.state?.secret)

function readClient (ctx: KoaContextWithOIDC): { client?: { name: string } } {
  return ctx.oidc.client === undefined ? {} : { client: nameClient(ctx.oidc.client) }
}

/** The pages that oidc-provider asks for. */
export const views = {
  async userCode (ctx: KoaContextWithOIDC, _form: string, _out?: ErrorOut, error?: Error): Promise<void> {
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

  async error (ctx: KoaContextWithOIDC, out: ErrorOut): Promise<void> {
    const { error, error_description: description } = out
    send(ctx, 'error', { message: description === undefined ? error : `${description} (${error})` })
  }
}

export type Views = typeof views
