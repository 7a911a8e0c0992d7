import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { TestKit } from '../../testing/index.ts'
import { build } from '../helpers/build.ts'
import { reuseMongoDatabase } from '../helpers/mongo-database.ts'
import { MONGODB_URL } from '../helpers/mongodb.ts'
import { checkProperty } from '../helpers/property.ts'
import { type Answer, type Call, EXPIRY, Model, PAST, type Role, type SignIn } from './api-model.ts'

// In the future of a MongoDB server's clock, whose TTL index would remove expired documents.
const BEGIN = Date.UTC(2126, 10, 21)
const SECOND = 1000
const showTime = (ticks: number) => new Date(BEGIN + ticks * SECOND).toISOString()

/** Everybody at the start: their accounts and roles. Each has a token. */
const CAST: [account: string, roles: Role[]][] = [['admin', ['admin']], ['mandy', ['manager']], ['serge', ['service']], ['ann', []], ['bob', ['editor']]]

/** The client of the first tokens: the admin's. */
const APP = 'app'

const numbers = fc.oneof({ weight: 9, arbitrary: fc.nat(7) }, { weight: 1, arbitrary: fc.constant(99) })
const accounts = fc.constantFrom('carl', 'Carl', 'dora', 'dora_2', 'eve@example.org', 'ann', '-bad', 'bad name', 'b%')
const names = fc.constantFrom('', 'a', 'A', '\u00e4', 'zoe', '\u{1f34f}', 'a%')
const passwords = fc.constantFrom('one', 'two', '')
const roles = fc.uniqueArray(fc.constantFrom<Role>('admin', 'manager', 'service', 'editor'), { maxLength: 2 })
const scopes = fc.array(fc.constantFrom('x', 'y', 'z', 'not one'), { maxLength: 3 })
const uris = fc.array(fc.constantFrom('https://a.example/cb', 'https://b.example/cb', 'https://a.example/cb?x=1', 'nothing'), { maxLength: 3 })
const pages = { offset: fc.nat(4), limit: fc.nat(4), format: fc.constant('array' as const) }
const sortOf = (...keys: string[]) => fc.oneof(
  { weight: 6, arbitrary: fc.uniqueArray(fc.tuple(fc.constantFrom(...keys), fc.constantFrom('asc', 'desc')), { selector: ([key]) => key, maxLength: 3 }).map((items) => items.map((item) => item.join(':')).join()) },
  { weight: 1, arbitrary: fc.constantFrom('nothing:asc', `${keys[0]}`, `${keys[0]}:up`, `${keys[0]}:asc:asc`, `${keys[0]}:asc,${keys[0]}:desc`) }
)

const op = <T extends Call['op']>(name: T) => fc.constant(name)
// The record of each call leaves its optional parts out at random.
const calls: fc.Arbitrary<Call> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ op: op('createUser'), account: accounts, password: passwords, name: names, expires: fc.boolean() }, { requiredKeys: ['op', 'account', 'password'] }) },
  { weight: 2, arbitrary: fc.record({ op: op('getUser'), user: numbers, fields: fc.constantFrom('', 'expired', 'disabled,expired,other') }, { requiredKeys: ['op', 'user'] }) },
  { weight: 5, arbitrary: fc.record({ op: op('patchUser'), user: numbers, name: names, password: passwords, roles, verified: fc.constantFrom(PAST, 'yesterday'), disable: fc.boolean() }, { requiredKeys: ['op', 'user'] }) },
  { weight: 1, arbitrary: fc.record({ op: op('deleteUser'), user: numbers }) },
  { weight: 1, arbitrary: fc.record({ op: op('countUsers'), account: fc.constantFrom('', 'ANN', 'nobody'), contains: fc.constantFrom('', 'a', 'AR', '%', '_', '.') }, { requiredKeys: ['op'] }) },
  { weight: 2, arbitrary: fc.record({ op: op('listUsers'), contains: fc.constantFrom('', 'a', '_'), fields: fc.constantFrom('expired', 'disabled'), sort: sortOf('account', 'created', 'modified', 'verified', 'name'), ...pages }, { requiredKeys: ['op'] }) },
  { weight: 1, arbitrary: fc.record({ op: op('getProfile') }) },
  { weight: 3, arbitrary: fc.record({ op: op('patchProfile'), name: names, password: passwords, info: fc.dictionary(fc.constantFrom('a', '$b', 'c.d', ''), names, { maxKeys: 2, noNullPrototype: true }) }, { requiredKeys: ['op'] }) },
  { weight: 3, arbitrary: fc.record({ op: op('createClient'), name: names, scopes, uris, credentials: fc.boolean(), owner: fc.oneof(numbers, fc.constant('' as const)) }, { requiredKeys: ['op', 'name', 'scopes', 'uris'] }) },
  { weight: 2, arbitrary: fc.record({ op: op('getClient'), client: numbers }) },
  { weight: 3, arbitrary: fc.record({ op: op('patchClient'), client: numbers, name: names, scopes, image: fc.constantFrom('https://a.example/i.png', 'nothing', null), regenerate: fc.boolean() }, { requiredKeys: ['op', 'client'] }) },
  { weight: 1, arbitrary: fc.record({ op: op('deleteClient'), client: numbers }) },
  { weight: 1, arbitrary: fc.record({ op: op('deleteClientsOf'), user: numbers }) },
  { weight: 1, arbitrary: fc.record({ op: op('countClients'), user: numbers }, { requiredKeys: ['op'] }) },
  { weight: 2, arbitrary: fc.record({ op: op('listClients'), user: numbers, fields: fc.constantFrom('', 'name', 'clientSecret,image', 'nothing'), sort: sortOf('created', 'modified', 'name'), ...pages }, { requiredKeys: ['op'] }) },
  { weight: 2, arbitrary: fc.record({ op: op('tokenInfo') }) },
  { weight: 1, arbitrary: fc.record({ op: op('logout') }) }
)

/** A step: a sign-in, or a call with a token. */
type Step = SignIn | { token: number, call: Call }
const steps: fc.Arbitrary<Step[]> = fc.array(fc.oneof(
  { weight: 1, arbitrary: fc.record({ op: fc.constant('signIn' as const), user: numbers, client: numbers }) },
  // The admin's token is the first.
  { weight: 8, arbitrary: fc.record({ token: fc.oneof(fc.constant(0), fc.nat(9)), call: calls }) }
), { minLength: 1, maxLength: 40 })

/** The service on one store, as the model's numbers name things. */
class Subject {
  readonly #kit: TestKit
  readonly #users: string[] = []
  readonly #clients: string[] = []
  readonly #tokens: string[] = []
  readonly #secrets = new Map<string, string>()

  constructor (kit: TestKit) {
    this.#kit = kit
  }

  async begin (): Promise<void> {
    await this.#kit.app.identity.tokens.settle()
    await this.#kit.reset()
    for (const list of [this.#users, this.#clients, this.#tokens]) list.length = 0
    this.#secrets.clear()
    for (const [account, roles] of CAST) {
      const { user_id } = await this.#kit.mint({ user: account, roles, ...(this.#clients[0] !== undefined && { client: this.#clients[0] }) })
      this.#users.push(user_id)
      // Its own clients come from the service, which numbers their ids by time.
      this.#clients[0] ??= await this.#createApp(user_id)
      // So that ids, which begin with the time, are in the order of creation.
      this.advance()
    }
    for (const user of this.#users.keys()) await this.signIn({ op: 'signIn', user, client: 0 })
  }

  async #createApp (user_id: string): Promise<string> {
    const { clients, store } = this.#kit.app.identity
    // Minted with the first token.
    await store.collection('clients').deleteMany({ equal: { name: 'test' } })
    const { clientId } = await clients.create({ data: { redirectUris: [], scopes: [], name: APP } }, { user_id, isAdmin: true })
    return clientId
  }

  advance (): void {
    this.#kit.clock.advance(SECOND)
  }

  async signIn ({ user, client }: SignIn): Promise<void> {
    const { access_token } = await this.#kit.mint({ user: this.#users[user]!, client: this.#clients[client]! })
    this.#tokens.push(access_token)
  }

  async answer (token: number, call: Call): Promise<Answer> {
    const reply = await this.#kit.inject({ ...this.#toRequest(call), headers: { authorization: `Bearer ${this.#tokens[token] ?? 'none'}` } })
    const body = reply.body === '' ? undefined : reply.json()
    if (reply.statusCode >= 400) return { status: reply.statusCode, code: body.code }
    if (call.op === 'createUser') this.#users.push(body.data.user_id)
    if (call.op === 'createClient') this.#clients.push(body.data.clientId)
    return { status: reply.statusCode, ...(body !== undefined && { body: this.#translate(body) }) }
  }

  /** The ids of this store as the model's, and secrets by how often they changed. */
  #translate (value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#translate(item))
    if (typeof value !== 'object' || value === null) return value
    const record = Object.fromEntries(Object.entries(value).map(([key, item]): [string, unknown] => {
      if (key === 'user_id' || key === 'userId') return [key, `u${this.#users.indexOf(String(item))}`]
      if (key === 'client_id' || key === 'clientId') return [key, `c${this.#clients.indexOf(String(item))}`]
      return [key, this.#translate(item)]
    }))
    // Secrets are random, so the model only counts them.
    if (typeof record.clientSecret === 'string') record.clientSecret = `secret ${String(record.clientId)} ${this.#count(String(record.clientId), record.clientSecret)}`
    return record
  }

  #count (client: string, secret: string): number {
    const known = [...this.#secrets].filter(([, owner]) => owner === client).map(([text]) => text)
    if (!known.includes(secret)) this.#secrets.set(secret, client)
    return known.includes(secret) ? known.indexOf(secret) : known.length
  }

  #toRequest (call: Call): { method: 'GET' | 'POST' | 'PATCH' | 'DELETE', url: string, payload?: object } {
    const user = (number: number) => this.#users[number] ?? `missing${number}`
    const client = (number: number) => this.#clients[number] ?? `missing${number}`
    const query = (given: object) => new URLSearchParams(Object.entries(given).map(([key, value]): [string, string] => [key, String(value)])).toString()
    switch (call.op) {
      case 'tokenInfo': return { method: 'GET', url: '/api/v1/auth/tokeninfo' }
      case 'logout': return { method: 'POST', url: '/api/v1/auth/logout' }
      case 'getProfile': return { method: 'GET', url: '/api/v1/user' }
      case 'patchProfile': {
        const { op: _op, ...data } = call
        return { method: 'PATCH', url: '/api/v1/user', payload: { data } }
      }
      case 'createUser': {
        const { op: _op, expires, ...data } = call
        return { method: 'POST', url: '/api/v1/user', payload: { data, ...(expires === true && { expired_at: EXPIRY }) } }
      }
      case 'getUser': return { method: 'GET', url: `/api/v1/user/${user(call.user)}?${query({ fields: call.fields ?? '' })}` }
      case 'patchUser': {
        const { op: _op, user: number, disable, verified, roles, ...rest } = call
        const data = { ...rest, ...(verified !== undefined && { verified_at: verified }), ...(roles && { roles: Object.fromEntries(roles.map((role) => [role, true])) }) }
        return { method: 'PATCH', url: `/api/v1/user/${user(number)}`, payload: { data, ...(disable !== undefined && { disable }) } }
      }
      case 'deleteUser': return { method: 'DELETE', url: `/api/v1/user/${user(call.user)}` }
      case 'countUsers': {
        const { op: _op, ...given } = call
        return { method: 'GET', url: `/api/v1/user/count?${query(given)}` }
      }
      case 'listUsers': {
        const { op: _op, ...given } = call
        return { method: 'GET', url: `/api/v1/user/list?${query(given)}` }
      }
      case 'createClient': {
        const { name, scopes, uris, credentials, owner } = call
        const data = { name, scopes, redirectUris: uris, ...(owner !== undefined && { userId: owner === '' ? '' : user(owner) }) }
        return { method: 'POST', url: '/api/v1/client', payload: { data, ...(credentials !== undefined && { credentials }) } }
      }
      case 'getClient': return { method: 'GET', url: `/api/v1/client/${client(call.client)}` }
      case 'patchClient': {
        const { op: _op, client: number, regenerate, ...data } = call
        return { method: 'PATCH', url: `/api/v1/client/${client(number)}`, payload: { data, ...(regenerate !== undefined && { regen_secret: regenerate }) } }
      }
      case 'deleteClient': return { method: 'DELETE', url: `/api/v1/client/${client(call.client)}` }
      case 'deleteClientsOf': return { method: 'DELETE', url: `/api/v1/client/user/${user(call.user)}` }
      case 'countClients': return { method: 'GET', url: `/api/v1/client/count?${query(call.user === undefined ? {} : { user: user(call.user) })}` }
      case 'listClients': {
        const { op: _op, user: owner, ...given } = call
        return { method: 'GET', url: `/api/v1/client/list?${query({ ...given, ...(owner !== undefined && { user: user(owner) }) })}` }
      }
    }
  }
}

async function open (t: Test, database: string): Promise<Subject> {
  return new Subject(await build(t, { database, time: BEGIN, rateLimit: false }))
}

t.test('every sequence of calls has the answers of the model, on each store', async (t) => {
  const subjects = [await open(t, `sqlite:${t.testdir()}/identity.db`)]
  if (MONGODB_URL !== undefined) subjects.push(await open(t, reuseMongoDatabase(t, MONGODB_URL)))
  await checkProperty(t, 40, fc.asyncProperty(steps, async (sequence) => {
    const model = new Model(showTime)
    for (const [ticks, [account, roles]] of CAST.entries()) model.addUser(account, roles, ticks)
    model.addClient(APP, 0)
    for (const user of CAST.keys()) model.signIn({ op: 'signIn', user, client: 0 })
    for (const subject of subjects) await subject.begin()
    let time = CAST.length
    const look: Call[] = [{ op: 'listUsers', fields: 'expired,disabled', limit: 0 }, { op: 'listClients', limit: 0 }]
    // At the end the admin lists all users and clients, unless the token has ended.
    for (const step of [...sequence, ...look.map((call) => ({ token: 0, call }))]) {
      time++
      for (const subject of subjects) subject.advance()
      if ('op' in step) {
        if (model.signIn(step)) for (const subject of subjects) await subject.signIn(step)
        continue
      }
      const expected = model.answer(step.token, step.call, time)
      for (const [index, subject] of subjects.entries()) {
        deepStrictEqual(await subject.answer(step.token, step.call), expected, `${JSON.stringify(step)} on ${index === 0 ? 'SQLite' : 'MongoDB'}`)
      }
    }
  }))
})
