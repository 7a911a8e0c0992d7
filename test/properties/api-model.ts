import { compareValues } from '../helpers/property.ts'

/**
 * A model of the API, written from the interface's description: the answers to sequential requests. It keeps plain
 * objects and shares no code with the service. Ids are numbers in the order of creation, times are numbers of ticks.
 */

/** A request. Users, clients and tokens are named by their number, which may be one that never existed. */
export type Call =
  | { op: 'createUser', account: string, password: string, name?: string, expires?: boolean }
  | { op: 'getUser', user: number, fields?: string }
  | { op: 'patchUser', user: number, name?: string, password?: string, roles?: Role[], verified?: string, disable?: boolean }
  | { op: 'deleteUser', user: number }
  | { op: 'countUsers', account?: string, contains?: string }
  | { op: 'listUsers', contains?: string, fields?: string, sort?: string, offset?: number, limit?: number, format?: 'array' }
  | { op: 'getProfile' }
  | { op: 'patchProfile', name?: string, password?: string, info?: Record<string, string> }
  | { op: 'createClient', name: string, scopes: string[], uris: string[], credentials?: boolean, owner?: number | '' }
  | { op: 'getClient', client: number }
  | { op: 'patchClient', client: number, name?: string, scopes?: string[], image?: string | null, regenerate?: boolean }
  | { op: 'deleteClient', client: number }
  | { op: 'deleteClientsOf', user: number }
  | { op: 'countClients', user?: number }
  | { op: 'listClients', user?: number, fields?: string, sort?: string, offset?: number, limit?: number, format?: 'array' }
  | { op: 'tokenInfo' }
  | { op: 'logout' }

/** Somebody signs in instead of calling: a token for this user and this client, if there are such. */
export interface SignIn { op: 'signIn', user: number, client: number }

export type Role = 'admin' | 'manager' | 'service' | 'editor'

export interface Answer { status: number, code?: string, body?: unknown }

interface User {
  id: string
  account: string
  name: string
  info: Record<string, string>
  roles: Record<string, true>
  created_at: number
  modified_at: number
  verified_at?: number | undefined
  expired_at?: number | undefined
  disabled_at?: number | undefined
}

interface Client {
  id: string
  name: string
  scopes: string[]
  redirectUris: string[]
  image?: string | undefined
  /** How many secrets it has had; absent on a public client. */
  secret?: number
  owner: string
  createdAt: number
  modifiedAt: number
}

interface Token { user: User, client: Client, isAlive: boolean }

class Refusal extends Error {
  readonly answer: Answer

  constructor (status: number, code: string) {
    super(code)
    this.answer = { status, code }
  }
}

const param = () => new Refusal(400, 'ErrParam')
const unknown = () => new Refusal(401, 'ErrUnknown')
const denied = () => new Refusal(403, 'ErrPerm')
const missing = () => new Refusal(404, 'ErrNotFound')

const DONE: Answer = { status: 204 }
const found = (data: unknown): Answer => ({ status: 200, body: { data } })

/** The time that a verified_at of the calls has, and the one at which an expiring user expires. */
export const PAST = '2020-02-29T12:00:00+01:00'
export const PAST_SHOWN = '2020-02-29T11:00:00.000Z'
export const EXPIRY = '2999-01-01T00:00:00.000Z'

/** How a number of ticks is shown. */
export type Show = (ticks: number) => string

type Sortable = Record<string, string | number | undefined>

function sortBy<T extends { id: string }> (records: T[], text: string | undefined, keys: Record<string, keyof T>, fallback: string): T[] {
  const items = (text || fallback).split(',').map((item) => item.split(':'))
  const names = items.map(([key]) => key)
  for (const [key = '', direction, ...rest] of items) {
    if (!Object.hasOwn(keys, key) || rest.length > 0 || (direction !== 'asc' && direction !== 'desc')) throw param()
  }
  if (new Set(names).size < names.length) throw param()
  const last = items.at(-1)![1]
  return [...records].sort((one, other) => {
    for (const [key = '', direction] of items) {
      const order = compareValues((one as Sortable)[keys[key] as string], (other as Sortable)[keys[key] as string])
      if (order !== 0) return direction === 'asc' ? order : -order
    }
    const order = toNumber(one) - toNumber(other)
    return last === 'asc' ? order : -order
  })
}

/** Ids of the service begin with the time, so that they are in the order of creation. */
const toNumber = ({ id }: { id: string }) => Number(id.slice(1))

const page = <T>(records: T[], { offset = 0, limit = 100 }: { offset?: number, limit?: number }) => records.slice(offset, limit === 0 ? undefined : offset + limit)

export class Model {
  readonly users: User[] = []
  readonly clients: Client[] = []
  readonly tokens: Token[] = []
  readonly #show: Show
  #time = 0

  constructor (show: Show) {
    this.#show = show
  }

  /** A user from before the first call; a client likewise. */
  addUser (account: string, roles: Role[], ticks: number): void {
    const held = Object.fromEntries(roles.map((role): [string, true] => [role, true]))
    this.users.push({ id: `u${this.users.length}`, account, name: '', info: {}, roles: held, created_at: ticks, modified_at: ticks, verified_at: ticks })
  }

  addClient (name: string, owner: number): void {
    this.clients.push({ id: `c${this.clients.length}`, name, scopes: [], redirectUris: [], owner: `u${owner}`, createdAt: 0, modifiedAt: 0 })
  }

  /** Adds a token for a user and a client. False if either does not exist. */
  signIn ({ user, client }: SignIn): boolean {
    const [holder, app] = [this.#find(this.users, user), this.#find(this.clients, client)]
    if (holder === undefined || app === undefined) return false
    this.tokens.push({ user: holder, client: app, isAlive: true })
    return true
  }

  /** @param ticks the time of the call */
  answer (token: number, call: Call, ticks: number): Answer {
    this.#time = ticks
    try {
      return this.#run(this.#authenticate(token), call)
    } catch (error) {
      if (error instanceof Refusal) return error.answer
      throw error
    }
  }

  #find<T extends { id: string }> (records: T[], number: number): T | undefined {
    return records.find(({ id }) => id.slice(1) === String(number) && !this.#gone.has(id))
  }

  readonly #gone = new Set<string>()

  /** Section 5: the user and the client that the token belongs to. */
  #authenticate (number: number): Token {
    const token = this.tokens[number]
    if (token === undefined || !token.isAlive || token.user.disabled_at !== undefined || this.#gone.has(token.user.id) || this.#gone.has(token.client.id)) throw unknown()
    return token
  }

  #endTokens (isTheirs: (token: Token) => boolean): void {
    for (const token of this.tokens) if (isTheirs(token)) token.isAlive = false
  }

  #run (token: Token, call: Call): Answer {
    const { user: caller } = token
    const isAdmin = caller.roles.admin === true
    const requireAdmin = () => { if (!isAdmin) throw denied() }
    const live = <T extends { id: string }>(records: T[]) => records.filter(({ id }) => !this.#gone.has(id))
    switch (call.op) {
      case 'tokenInfo':
        return found({ user_id: caller.id, account: caller.account, name: caller.name, roles: caller.roles, client_id: token.client.id, scopes: token.client.scopes })
      case 'logout':
        token.isAlive = false
        return DONE
      case 'getProfile':
        return found(this.#profile(caller))
      case 'patchProfile': {
        const { name, password, info } = call
        if (password === '' || (info !== undefined && Object.hasOwn(info, ''))) throw param()
        if (name === undefined && password === undefined && info === undefined) throw param()
        this.#change(caller, { name, info, password })
        return DONE
      }
      case 'createUser': {
        requireAdmin()
        const { account: given, password, name = '', expires } = call
        const account = given.toLowerCase()
        if (!/^[a-z0-9][a-z0-9_-]*$/.test(account) && !/^[a-z]+@[a-z]+\.[a-z]+$/.test(account)) throw param()
        if (password === '') throw param()
        if (live(this.users).some((user) => user.account === account)) throw new Refusal(409, 'USER_EXIST')
        const times = expires === true ? { expired_at: Infinity } : { verified_at: this.#time }
        const user: User = { id: `u${this.users.length}`, account, name, info: {}, roles: {}, created_at: this.#time, modified_at: this.#time, ...times }
        this.users.push(user)
        return found({ user_id: user.id })
      }
      case 'getUser': {
        if (!isAdmin && caller.roles.manager !== true) throw denied()
        const user = this.#require(this.users, call.user)
        if (!isAdmin && user !== caller && ['admin', 'manager', 'service'].some((role) => user.roles[role] === true)) throw denied()
        return found(this.#showUser(user, call.fields))
      }
      case 'countUsers':
        requireAdmin()
        return found({ count: this.#filterUsers(live(this.users), call).length })
      case 'listUsers': {
        requireAdmin()
        const keys = { account: 'account', created: 'created_at', modified: 'modified_at', verified: 'verified_at', name: 'name' } as const
        const users = page(sortBy(this.#filterUsers(live(this.users), call), call.sort, keys, 'account:asc'), call).map((user) => this.#showUser(user, call.fields))
        return { status: 200, body: call.format === 'array' ? users : { data: users } }
      }
      case 'patchUser': return this.#patchUser(token, call, isAdmin)
      case 'deleteUser': {
        requireAdmin()
        if (caller.id === `u${call.user}`) throw denied()
        const user = this.#require(this.users, call.user)
        this.#gone.add(user.id)
        this.#endTokens((token) => token.user === user)
        return DONE
      }
      case 'createClient': {
        const { name, scopes, uris, credentials, owner } = call
        this.#checkLists(scopes, uris)
        if (isAdmin && owner === '') throw param()
        if (isAdmin && owner !== undefined && this.#find(this.users, Number(owner)) === undefined) throw new Refusal(422, 'USER_NOT_EXIST')
        const client: Client = {
          id: `c${this.clients.length}`,
          name,
          scopes: [...new Set(scopes)].sort(),
          redirectUris: [...new Set(uris)].sort(),
          ...(credentials === true && { secret: 0 }),
          owner: isAdmin && owner !== undefined ? `u${owner}` : caller.id,
          createdAt: this.#time,
          modifiedAt: this.#time
        }
        this.clients.push(client)
        return found({ clientId: client.id })
      }
      case 'getClient':
        return found(this.#showClient(this.#requireClient(call.client, caller, isAdmin), isAdmin))
      case 'patchClient': {
        const { name, scopes, image, regenerate } = call
        const client = this.#requireClient(call.client, caller, isAdmin)
        this.#checkLists(scopes ?? [], [])
        if (typeof image === 'string' && !image.startsWith('https://')) throw param()
        if (regenerate === true && client.secret === undefined) throw param()
        if (name === undefined && scopes === undefined && image === undefined && regenerate !== true) throw param()
        if (name !== undefined) client.name = name
        if (scopes !== undefined) client.scopes = [...new Set(scopes)].sort()
        if (image !== undefined) client.image = image ?? undefined
        client.modifiedAt = this.#time
        if (regenerate === true) {
          client.secret!++
          this.#endTokens((token) => token.client === client)
        }
        return DONE
      }
      case 'deleteClient': {
        if (token.client.id === `c${call.client}`) throw denied()
        this.#gone.add(this.#requireClient(call.client, caller, isAdmin).id)
        return DONE
      }
      case 'deleteClientsOf': {
        if (!isAdmin && caller.id !== `u${call.user}`) throw denied()
        for (const { id, owner } of live(this.clients)) if (owner === `u${call.user}`) this.#gone.add(id)
        return DONE
      }
      case 'countClients':
        return found({ count: this.#filterClients(live(this.clients), call.user, caller, isAdmin).length })
      case 'listClients': {
        const known = ['clientId', 'createdAt', 'modifiedAt', 'clientSecret', 'redirectUris', 'scopes', 'userId', 'name', 'image']
        const fields = call.fields ? call.fields.split(',') : known
        if (!fields.every((field) => known.includes(field))) throw param()
        const keys = { created: 'createdAt', modified: 'modifiedAt', name: 'name' } as const
        const clients = page(sortBy(this.#filterClients(live(this.clients), call.user, caller, isAdmin), call.sort, keys, 'name:asc'), call)
          .map((client) => Object.fromEntries(Object.entries(this.#showClient(client, isAdmin)).filter(([field]) => field === 'clientId' || fields.includes(field))))
        return { status: 200, body: call.format === 'array' ? clients : { data: clients } }
      }
    }
  }

  #require<T extends { id: string }> (records: T[], number: number): T {
    const record = this.#find(records, number)
    if (record === undefined) throw missing()
    return record
  }

  #requireClient (number: number, caller: User, isAdmin: boolean): Client {
    const client = this.#require(this.clients, number)
    if (!isAdmin && client.owner !== caller.id) throw missing()
    return client
  }

  #checkLists (scopes: string[], uris: string[]): void {
    if (scopes.some((scope) => scope.includes(' ')) || uris.some((uri) => !uri.startsWith('https://'))) throw param()
  }

  #filterUsers (users: User[], { account, contains }: { account?: string, contains?: string }): User[] {
    if (account) return users.filter((user) => user.account === account.toLowerCase())
    return contains ? users.filter((user) => user.account.includes(contains.toLowerCase())) : users
  }

  #filterClients (clients: Client[], user: number | undefined, caller: User, isAdmin: boolean): Client[] {
    if (!isAdmin) return clients.filter(({ owner }) => owner === caller.id)
    return user === undefined ? clients : clients.filter(({ owner }) => owner === `u${user}`)
  }

  /** Section 4.3's rules for a caller who is no admin. */
  #patchUser ({ user: caller }: Token, call: Extract<Call, { op: 'patchUser' }>, isAdmin: boolean): Answer {
    if (!isAdmin && caller.roles.manager !== true && caller.roles.service !== true) throw denied()
    const user = this.#require(this.users, call.user)
    const { roles, disable, verified } = call
    if (!isAdmin) {
      if (user.roles.admin === true) throw denied()
      if (roles !== undefined) {
        if (roles.includes('admin') || roles.includes('service') || user.roles.service === true) throw denied()
        // Taking a role away is as much as granting it.
        if (user.roles.manager === true && !roles.includes('manager') && user !== caller) throw denied()
      }
      if (disable !== undefined && user.roles.manager === true) throw denied()
    }
    const { name, password } = isAdmin ? call : {}
    if (password === '') throw param()
    if (isAdmin && verified !== undefined && verified !== PAST) throw param()
    const isVerified = isAdmin && verified !== undefined
    if (name === undefined && password === undefined && roles === undefined && disable === undefined && !isVerified) throw param()
    if (roles !== undefined) user.roles = Object.fromEntries(roles.map((role) => [role, true]))
    if (isVerified) {
      user.verified_at = -1
      user.expired_at = undefined
    }
    if (disable === true) user.disabled_at = this.#time
    else if (disable === false) user.disabled_at = undefined
    // A disabled user's tokens do not come back.
    if (disable === true) this.#endTokens((token) => token.user === user)
    this.#change(user, { name, password })
    return DONE
  }

  #change (user: User, { name, info, password }: { name?: string | undefined, info?: Record<string, string> | undefined, password?: string | undefined }): void {
    if (name !== undefined) user.name = name
    if (info !== undefined) user.info = info
    if (password !== undefined) this.#endTokens((token) => token.user === user)
    user.modified_at = this.#time
  }

  #time_ (ticks: number): string {
    return ticks === -1 ? PAST_SHOWN : ticks === Infinity ? EXPIRY : this.#show(ticks)
  }

  #profile ({ account, created_at, modified_at, verified_at, roles, name, info }: User) {
    return {
      account,
      created_at: this.#time_(created_at),
      modified_at: this.#time_(modified_at),
      ...(verified_at !== undefined && { verified_at: this.#time_(verified_at) }),
      roles,
      name,
      info
    }
  }

  #showUser (user: User, fields = '') {
    const asked = fields.split(',')
    const shown = (ticks: number | undefined) => ticks === undefined ? null : this.#time_(ticks)
    return {
      user_id: user.id,
      ...this.#profile(user),
      ...(asked.includes('expired') && { expired_at: shown(user.expired_at) }),
      ...(asked.includes('disabled') && { disabled_at: shown(user.disabled_at) })
    }
  }

  #showClient (client: Client, isAdmin: boolean): Record<string, unknown> {
    return {
      clientId: client.id,
      createdAt: this.#time_(client.createdAt),
      modifiedAt: this.#time_(client.modifiedAt),
      ...(client.secret !== undefined && { clientSecret: `secret ${client.id} ${client.secret}` }),
      redirectUris: client.redirectUris,
      scopes: client.scopes,
      ...(isAdmin && { userId: client.owner }),
      name: client.name,
      ...(client.image !== undefined && { image: client.image })
    }
  }
}
