import type { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Provider, errors, interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider'
import { createAccounts } from './accounts.ts'
import { createAdapterFactory } from './adapter.ts'
import type { OurClient } from './clients.ts'
import { createConfiguration, type OidcSettings } from './configuration.ts'
import type { KeyRing } from './keys.ts'
import type { AdapterParts } from './model-adapter.ts'
import { patchProvider, setAddress } from './patches.ts'
import { INTERACTION, ROUTES } from './routes.ts'
import { createViews } from './views.ts'

export interface ProviderParts extends Pick<AdapterParts, 'store' | 'tokens' | 'box' | 'times'> {
  issuer: URL
  /** The path before `/api/v1`, as the app sees it. */
  prefix: string
  settings: OidcSettings
  keys: KeyRing
  /** Told of what went wrong on our side. */
  onError (error: unknown, request: IncomingMessage): void
}

/** An authorization that waits for its user, as our pages see it. */
export interface Waiting {
  uid: string
  /** Where the page's form goes. */
  action: string
  prompt: 'login' | 'consent'
  clientId: string
  clientName: string
  firstParty: boolean
  redirectUri?: string
  /** What the client expects the account to be. */
  loginHint?: string
  /** Of the user who is signed in already. */
  accountId?: string
  scopes: string[]
}

/** What the user decided. */
export type Decision =
  | { login: { accountId: string, amr: string[], user_epoch: number } }
  | { consent: Record<string, never> }
  | { error: 'access_denied', error_description: string }

/** oidc-provider over our store, as the plugins use it. Of its types none goes further. */
export interface Engine {
  readonly issuer: URL
  /** Answers a request at one of the engine's own paths. */
  handle (request: IncomingMessage, response: ServerResponse, address: string): Promise<void>
  /** The authorization this browser waits in; throws where there is none. */
  findWaiting (request: IncomingMessage, response: ServerResponse): Promise<Waiting>
  /** Writes down what the user decided. Resolves to where the browser goes on. */
  decide (request: IncomingMessage, response: ServerResponse, decision: Decision): Promise<string>
}

/** Builds an engine. */
export async function buildEngine (parts: ProviderParts): Promise<Engine> {
  const { issuer, prefix, settings, keys, store, tokens, box, times } = parts
  const base = `${prefix}/api/v1`
  // What a proxy takes off the front of a path before it gets here.
  const mount = issuer.pathname.replace(/\/$/, '').slice(0, -prefix.length || undefined)
  const adapter = createAdapterFactory({
    store,
    tokens,
    box,
    times,
    keys,
    errors,
    accessTtl: settings.accessTtl,
    refreshGrace: settings.refreshGrace,
    firstParty: new Set(settings.firstParty),
    getContext: () => Provider.ctx as KoaContextWithOIDC | undefined
  })
  const views = createViews(settings.name)
  const provider = new Provider(issuer.href.replace(/\/$/, ''), createConfiguration({
    settings,
    base,
    mount,
    secure: issuer.protocol === 'https:',
    keys,
    adapter,
    findAccount: createAccounts(store, times.now),
    views,
    errors,
    policy: interactionPolicy
  }))
  patchProvider(provider, issuer, errors)

  provider.on('server_error', (ctx: KoaContextWithOIDC, error: Error & { headers?: Record<string, string> }) => {
    // A store that is away says when to ask again.
    if (error.headers !== undefined) ctx.set(error.headers)
    parts.onError(error, ctx.req)
  })
  const koa: EventEmitter = provider
  koa.on('error', (error: Error, ctx?: KoaContextWithOIDC) => {
    if (ctx !== undefined) parts.onError(error, ctx.req)
  })
  provider.use(async (ctx, next) => {
    ctx.mountPath = mount
    // A link with the code in it fills in the form, where oidc-provider would send it on by script.
    if (ctx.method === 'GET' && ctx.path === base + ROUTES.code_verification && typeof ctx.query.user_code === 'string') {
      ctx.state.userCode = ctx.query.user_code.slice(0, 64)
      ctx.query = {}
    }
    await next()
    const asked = ctx as KoaContextWithOIDC
    const ended = (asked.oidc as KoaContextWithOIDC['oidc'] | undefined)?.route === 'end_session' && asked.status === 200
    if (ended && asked.oidc.session?.accountId === undefined) await views.alreadySignedOut(asked)
  })
  const callback = provider.callback()

  /** Who signs in as somebody else signs out first. oidc-provider does the same at a resume, but goes there by a script. */
  async function leaveFormer (request: IncomingMessage, response: ServerResponse, accountId: string): Promise<void> {
    const interaction = await provider.interactionDetails(request, response)
    const former = interaction.session
    if (former?.accountId === undefined || former.accountId === accountId) return
    await tokens.endSignIn(former.uid)
    // The resume would look for the session that it began in.
    delete (former as { uid?: string }).uid
    await interaction.save(interaction.exp - Math.floor(Date.now() / 1000))
  }

  return {
    issuer,
    async handle (request, response, address) {
      setAddress(request, address)
      await callback(request, response)
    },
    async findWaiting (request, response) {
      const { uid, prompt, params, session } = await provider.interactionDetails(request, response)
      const client = await provider.Client.find(String(params.client_id))
      if (client === undefined) throw new errors.InvalidClient('client is invalid', 'client not found')
      const { redirect_uri: redirectUri, login_hint: loginHint, scope } = params as Record<string, string | undefined>
      return {
        uid,
        action: `${mount}${base}${INTERACTION}/${uid}`,
        prompt: prompt.name as Waiting['prompt'],
        clientId: client.clientId,
        clientName: client.clientName ?? client.clientId,
        firstParty: (client as unknown as OurClient).first_party,
        scopes: scope?.split(' ') ?? [],
        ...(redirectUri !== undefined && { redirectUri }),
        ...(loginHint !== undefined && { loginHint }),
        ...(session !== undefined && { accountId: session.accountId })
      }
    },
    async decide (request, response, decision) {
      if ('login' in decision) await leaveFormer(request, response, decision.login.accountId)
      return await provider.interactionResult(request, response, decision, { mergeWithLastSubmission: 'consent' in decision })
    }
  }
}
