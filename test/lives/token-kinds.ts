import fastify from 'fastify'
import type { Test } from 'tap'
import { type TestKey, assert, toFields } from '../helpers/assertions.ts'
import { type Api, callAs, unique } from '../helpers/people.ts'
import type { Browser } from '../oidc/browser.ts'
import { type Answer, type App, type Harness, getCode } from '../oidc/harness.ts'

// Every kind of token, each made as its users make it.

export const ROOT = { user_id: '', isAdmin: true }

/** The role that the resources of a scene require, of people and of clients. */
export const ROLE = 'clerk'

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

/** A service, with an API that has an embedded guard. */
export interface Stage {
  harness: Harness
  boss: Api
  /** A client that asks about the tokens of others. */
  asker: App
  issuer: string
  /** The status of a guarded route for a token. */
  guard: (audience: string, token: string) => Promise<number>
}

interface Resource { name: string, uri: string, id: string, scope: string }

/** A person, a client that they own, and two resources. The client is what people sign in to, and acts for itself too. */
export interface Scene extends Stage {
  user: { user_id: string, account: string, password: string }
  /** With the readable secret, or another one after `prepare`. */
  app: App
  /** The key by which the client authenticates. Absent: by its secret. */
  key?: TestKey
  /** The id of the secret or key that is to be removed. */
  credential?: string
  /** A resource with opaque tokens. */
  stock: Resource
  /** A resource with tokens that are JWTs. */
  orders: Resource
  browser: Browser
  /** Sends a form as the client. */
  send: (path: string, fields: Record<string, string>) => Promise<Answer>
}

/** A token that somebody has. */
export interface Held {
  kind: Kind
  /** The access token, or the latest one of the session of a refresh token. */
  access: () => string
  /** What a client would send to revoke it. */
  text: () => string
  /** Uses it in every way in which it is checked. @throws Error where the ways disagree */
  works: () => Promise<boolean>
}

export async function openStage (t: Test, harness: Harness): Promise<Stage> {
  const { kit } = harness
  const boss = callAs(kit, (await kit.mint({ user: 'boss@example.com', roles: ['admin'], ttl: 365 * 86_400 })).headers)
  const audiences = new Map<string, Promise<ReturnType<typeof fastify>>>()

  /** A host with a route that is guarded for this audience. */
  async function openHost (audience: string) {
    const host = fastify()
    t.teardown(() => host.close())
    host.get('/', { onRequest: kit.app.identity.guard({ audience, subject: 'any' }) }, async () => '')
    await host.ready()
    return host
  }

  return {
    harness,
    boss,
    asker: await harness.register({ name: 'Asker' }),
    issuer: ((await (await fetch(`${harness.url}/.well-known/openid-configuration`)).json()) as { issuer: string }).issuer,
    async guard (audience, token) {
      const opened = audiences.get(audience) ?? openHost(audience)
      audiences.set(audience, opened)
      return (await (await opened).inject({ url: '/', headers: { authorization: `Bearer ${token}` } })).statusCode
    }
  }
}

/** Declares a resource, whose id is another one each time. */
export async function declare ({ harness: { kit } }: Stage, name: string, tokenFormat: 'opaque' | 'jwt'): Promise<Resource> {
  const scope = `${name}:read`
  const uri = `https://${name}.example`
  const { resourceId } = await kit.app.identity.resources.create({ data: { id: uri, name, scopes: { [scope]: 'See it' }, selfService: [scope], roles: [ROLE], tokenFormat } })
  return { name, uri, id: resourceId, scope }
}

export async function openScene (stage: Stage): Promise<Scene> {
  const { harness } = stage
  const { users, clients } = harness.kit.app.identity
  const account = `${unique('person')}@example.com`
  const password = 'correct horse'
  const roles = { [ROLE]: true as const }
  const { user_id } = await users.create({ data: { account, password, name: 'Person' } })
  await users.patch(user_id, { data: { roles } }, ROOT)
  const [stock, orders] = [await declare(stage, unique('stock'), 'opaque'), await declare(stage, unique('orders'), 'jwt')]
  const redirect_uri = 'https://app.example/cb'
  const { clientId: client_id } = await clients.create({
    data: {
      redirectUris: [redirect_uri], name: 'App', scopes: ['read', stock.scope, orders.scope], userId: user_id, first_party: true, roles, grants: ['code', 'refresh', 'device', 'client']
    },
    credentials: true
  }, ROOT)
  const { clientSecret: client_secret = '' } = await clients.require(client_id, ROOT)
  const scene: Scene = {
    ...stage,
    user: { user_id, account, password },
    app: { client_id, client_secret, redirect_uri },
    stock,
    orders,
    browser: harness.browser(),
    async send (path, fields) {
      const { app, key } = scene
      const assertion = key && toFields(await assert(client_id, stage.issuer, key, {}, { kid: key.jwk.kid ?? '' }))
      return await harness.post(path, { ...fields, ...assertion }, key === undefined ? app : { ...app, client_secret: '' })
    }
  }
  return scene
}

interface Tokens { access_token: string, refresh_token: string }

function requireTokens ({ status, body }: Answer): Tokens {
  if (status !== 200) throw new Error(`no token: ${JSON.stringify(body)}`)
  return body as unknown as Tokens
}

async function signIn ({ harness, user, app, browser, send }: Scene, scope: string): Promise<Tokens> {
  return requireTokens(await send('token', await getCode({ ...harness, user }, app, { scope }, browser)))
}

async function connectDevice ({ user, browser, send }: Scene, scope: string): Promise<Tokens> {
  const { device_code, user_code } = (await send('device_authorization', { scope })).body as Record<string, string>
  let page = await (await browser.open('/api/v1/auth/device')).submit({ user_code: user_code! })
  if (page.title === 'Sign in') page = await page.submit({ account: user.account, password: user.password })
  await page.submit({ decision: 'allow' })
  return requireTokens(await send('token', { grant_type: DEVICE_GRANT, device_code: device_code! }))
}

const actForItself = async ({ send }: Scene, scope: string) => requireTokens(await send('token', { grant_type: 'client_credentials', scope }))

/** Whether everybody who is asked accepts an access token. @throws Error where they disagree */
async function isAccepted ({ harness: { kit, post }, asker, guard }: Stage, audience: string, token: string): Promise<boolean> {
  const [info, introspected] = [
    await kit.inject({ url: '/api/v1/auth/tokeninfo', headers: { authorization: `Bearer ${token}` } }), await post('introspect', { token }, asker)
  ]
  const answers = [info.statusCode === 200, introspected.body.active === true, await guard(audience, token) === 200]
  if (new Set(answers).size > 1) throw new Error(`tokeninfo, introspection and the guard disagree: ${answers.join(', ')}`)
  return answers[0]!
}

/** Whether a refresh token gets an access token that is valid. The latest of its session is kept. */
async function refresh ({ send, ...scene }: Scene, session: Tokens): Promise<boolean> {
  const { active = false } = (await send('introspect', { token: session.refresh_token })).body
  const { status, body } = await send('token', { grant_type: 'refresh_token', refresh_token: session.refresh_token })
  // A session whose resource is gone goes on, and gets nothing.
  if (active !== (status === 200 || body.error === 'invalid_target')) {
    throw new Error(`introspection and the token endpoint disagree: ${String(active)}, ${status} ${JSON.stringify(body)}`)
  }
  if (status !== 200) return false
  Object.assign(session, body)
  return await isAccepted(scene, scene.stock.uri, session.access_token)
}

const access = (audience: 'stock' | 'orders', make: (scene: Scene, scope: string) => Promise<{ access_token: string }>) => async (scene: Scene): Promise<Omit<Held, 'kind'>> => {
  const { uri, scope } = scene[audience]
  const { access_token } = await make(scene, scope)
  if (access_token.includes('.') !== (audience === 'orders')) throw new Error('the token has the wrong format')
  return { access: () => access_token, text: () => access_token, works: async () => await isAccepted(scene, uri, access_token) }
}

const refreshed = (make: (scene: Scene, scope: string) => Promise<Tokens>) => async (scene: Scene): Promise<Omit<Held, 'kind'>> => {
  const session = await make(scene, `openid offline_access read ${scene.stock.scope}`)
  return { access: () => session.access_token, text: () => session.refresh_token, works: async () => await refresh(scene, session) }
}

/** How each kind is made. A kind that is not in the table of ends fails its test. */
const MAKERS = {
  'sign-in': access('stock', async (scene, scope) => await signIn(scene, `openid ${scope}`)),
  refresh: refreshed(signIn),
  device: access('stock', async (scene, scope) => await connectDevice(scene, `openid ${scope}`)),
  'refresh of a device': refreshed(connectDevice),
  client: access('stock', actForItself),
  'JWT of a person': access('orders', async (scene, scope) => await signIn(scene, `openid offline_access ${scope}`)),
  'JWT of a client': access('orders', actForItself),
  minted: access('stock', async ({ harness: { kit }, user, app, stock }, scope) =>
    await kit.mint({ user: user.user_id, client: app.client_id, resource: stock.uri, scopes: [scope] })),
  service: access('stock', async ({ harness: { kit }, app, stock }, scope) => {
    const { token: access_token } = await kit.serviceToken(app.client_id, { scopes: [scope], resource: stock.uri })
    return { access_token }
  }),
  personal: access('stock', async ({ harness: { kit }, user, stock }, scope) => {
    const { token: access_token } = await kit.personalToken(user.user_id, { scopes: [scope], resource: stock.uri })
    return { access_token }
  })
} satisfies Record<string, (scene: Scene) => Promise<Omit<Held, 'kind'>>>

export type Kind = keyof typeof MAKERS

export const KINDS = Object.keys(MAKERS) as Kind[]

/** A token of every kind, each of a session of its own. */
export async function makeAll (scene: Scene): Promise<Held[]> {
  const all: Held[] = []
  for (const kind of KINDS) all.push({ kind, ...await MAKERS[kind](scene) })
  return all
}
