import type { InjectOptions } from 'fastify'
import type { CreateClient } from '../../schemas/client.ts'
import type { CreateUser } from '../../schemas/user.ts'
import type { Minted, MintRequest, TestKit } from '../../testing/index.ts'

/** The body of a reply when a test does not read its data. */
interface AnyBody { data?: unknown, code?: string, message?: string }

export interface Reply<T = AnyBody> {
  status: number
  headers: Record<string, unknown>
  /** The parsed JSON; null without a body. */
  body: T
}

/** Calls of the API, with the path after /api/v1. */
export interface Api {
  get: <T = AnyBody>(path: string) => Promise<Reply<T>>
  post: <T = AnyBody>(path: string, body?: object) => Promise<Reply<T>>
  patch: <T = AnyBody>(path: string, body?: object) => Promise<Reply<T>>
  delete: <T = AnyBody>(path: string) => Promise<Reply<T>>
  send: <T = AnyBody>(options: InjectOptions) => Promise<Reply<T>>
}

/** A user with a token. */
export type Person = Minted & Api

/** Calls of the API with these headers. */
export function callAs (kit: Pick<TestKit, 'inject'>, headers: Record<string, string> = {}, base = '/api/v1'): Api {
  async function send<T> (options: InjectOptions): Promise<Reply<T>> {
    const reply = await kit.inject({ ...options, url: `${base}${String(options.url)}`, headers: { ...headers, ...options.headers } })
    return { status: reply.statusCode, headers: reply.headers, body: reply.body === '' ? null as T : reply.json<T>() }
  }
  return {
    send,
    get: (url) => send({ method: 'GET', url }),
    post: (url, payload) => send({ method: 'POST', url, ...(payload && { payload }) }),
    patch: (url, payload) => send({ method: 'PATCH', url, ...(payload && { payload }) }),
    delete: (url) => send({ method: 'DELETE', url })
  }
}

/** Mints a token; by default for a new user. */
export async function signIn (kit: TestKit, request: MintRequest = {}): Promise<Person> {
  const minted = await kit.mint(request)
  return { ...minted, ...callAs(kit, minted.headers) }
}

/** Mints a token with all the user's power for a client with these scopes. `kit.mint({ scopes })` would narrow the token. */
export async function mintAll (kit: Pick<TestKit, 'mint'>, { scopes, ...request }: MintRequest): Promise<Minted> {
  const { client_id } = await kit.mint({ ...request, ...(scopes !== undefined && { scopes }) })
  return await kit.mint({ ...request, client: client_id })
}

let count = 0

/** A text that no other test uses. */
export function unique (text: string): string {
  return `${text}-${process.pid.toString(36)}-${(count++).toString(36)}`
}

/** Registers a client; resolves to its id. */
export async function createClient (owner: Api, data: Partial<CreateClient['data']> = {}, rest: Omit<CreateClient, 'data'> = {}): Promise<string> {
  const body = { data: { redirectUris: [], scopes: [], name: 'a client', ...data }, ...rest }
  const reply = await owner.post<{ data: { clientId: string } }>('/client', body)
  if (reply.status !== 200) throw new Error(`POST /client answered ${reply.status}: ${JSON.stringify(reply.body)}`)
  return reply.body.data.clientId
}

/** Creates a user; resolves to the id. */
export async function createUser (admin: Api, data: Partial<CreateUser['data']> = {}, rest: Omit<CreateUser, 'data'> = {}): Promise<string> {
  const body = { data: { account: unique('user'), password: 'first', ...data }, ...rest }
  const reply = await admin.post<{ data: { user_id: string } }>('/user', body)
  if (reply.status !== 200) throw new Error(`POST /user answered ${reply.status}: ${JSON.stringify(reply.body)}`)
  return reply.body.data.user_id
}
