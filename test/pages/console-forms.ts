import { hash, randomBytes } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { toWayKey } from '../../lib/way.ts'
import type { Operation } from '../../plugins/access-table.ts'
import type { ConsolePage } from '../../routes/console/page.ts'
import type { TestAgent, StartOptions } from '../../testing/index.ts'
import { createApp } from '../../testing/kit.ts'
import type { Client } from '../../schemas/client.ts'
import type { Browser, Page } from '../oidc/browser.ts'
import type { Harness } from '../oidc/harness.ts'
import { CONSOLE, PASSWORD, enterConsole } from './console-visits.ts'
import { enter, readXsrf } from './visits.ts'

const BASE = '/admin'
const OPERATOR = { user_id: 'operator', isAdmin: true }

/** A call of the API that a page has made within the process. */
export interface ApiCall { method: string, access: string, status: number }

/** What the service itself says of its console: its pages, and the URLs that take a POST without being a form of one of them. */
export interface Console extends Harness {
  pages: ConsolePage[]
  others: string[]
  /** The calls since the last look. */
  takeCalls: () => ApiCall[]
}

/** Starts a service with the console, and watches what its pages call. */
export async function startConsole (t: Test, start: (options?: StartOptions) => Promise<Harness>, options: StartOptions = {}): Promise<Console> {
  const pages: ConsolePage[] = []
  const others: string[] = []
  const calls: ApiCall[] = []
  const app = createApp()
  app.addHook('onRoute', ({ method, url, config }) => {
    const page = config?.consolePage
    if (method === 'GET' && page !== undefined) pages.push(page)
    if ([method].flat().includes('POST') && page === undefined && url.startsWith(BASE)) others.push(url)
  })
  // The app of the API within the process is made at the first call of it.
  const watch = (message: unknown) => {
    const { fastify } = message as { fastify: FastifyInstance }
    fastify.addHook('onResponse', (request, reply, done) => {
      const { access } = request.routeOptions.config
      if (access !== undefined) calls.push({ method: request.method, access, status: reply.statusCode })
      done()
    })
  }
  subscribe('fastify.initialization', watch)
  t.teardown(() => unsubscribe('fastify.initialization', watch))
  const harness = await start({
    ...CONSOLE, app, upstream: {}, ...options, oidc: { documents: { hosts: ['agent.example'] }, signInLimit: false, ...options.oidc || undefined }
  })
  return { ...harness, pages, others, takeCalls: () => calls.splice(0) }
}

/** What a page says that went wrong. */
export const readAlert = ({ text }: { text: string }): string => /role="alert"[^>]*>([^<]*)/.exec(text)?.[1] ?? ''

const unescape = (text: string) => text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')

/** A form of a page as a browser would send it: where to, and its fields. */
export interface Form { to: string, action: string, fields: Record<string, string> }

/** The forms of a page that change something, but for the one that signs out. */
export function readForms ({ text }: Page): Form[] {
  return [...text.matchAll(/<form method="post" action="([^"]*)">(.*?)<\/form>/gs)].flatMap(([, to = '', body = '']) => {
    const inputs = [...body.matchAll(/<input (?:id="[^"]*" )?(?:type="hidden" )?name="([^"]*)"(?: type="(\w+)")?(?: value="([^"]*)")?[^>]*>/g)]
      .filter(([, , type]) => type !== 'checkbox' && type !== 'search')
      .map(([, name = '', , value = '']) => [name, unescape(value)])
    const areas = [...body.matchAll(/<textarea id="[^"]*" name="([^"]*)"[^>]*>\n?([^<]*)<\/textarea>/g)].map(([, name = '', value = '']) => [name, unescape(value)])
    const fields = Object.fromEntries([...inputs, ...areas]) as Record<string, string>
    return fields.action === undefined ? [] : [{ to: unescape(to), action: fields.action, fields }]
  })
}

/** Signs in as a new person with these roles. @returns the page, and who it is */
export async function enterAs (console: Console, roles: string[], tab: Browser = console.browser()): Promise<Page & { user_id: string }> {
  const page = await enterConsole(console, BASE, roles, tab)
  const { users } = console.kit.app.identity
  // The test email goes to a verified address alone.
  await users.patch(page.user_id, { data: { email: (await users.get(page.user_id))?.account ?? '', email_verified: true } }, OPERATOR)
  return page
}

/** People, clients and apps that the forms are about. Each is new, because a form may delete it. */
export class Things {
  readonly console: Console
  readonly #boss: Page
  #count = 0
  #agents = 0

  private constructor (console: Console, boss: Page) {
    this.console = console
    this.#boss = boss
  }

  static async create (console: Console): Promise<Things> {
    return new Things(console, await enterAs(console, ['admin', 'manager', 'support', 'service']))
  }

  next (): string {
    return `${++this.#count}-${randomBytes(4).toString('hex')}`
  }

  async person (fields: object = {}): Promise<string> {
    const { users } = this.console.kit.app.identity
    const { user_id } = await users.create({ data: { account: `person-${this.next()}@example.com`, password: PASSWORD, name: 'Person', ...fields } })
    return user_id
  }

  async account (user_id: string): Promise<string> {
    return (await this.console.kit.app.identity.users.get(user_id))?.account ?? ''
  }

  async disabled (): Promise<string> {
    const user_id = await this.person()
    await this.console.kit.app.identity.users.patch(user_id, { disable: true }, OPERATOR)
    return user_id
  }

  async invited (): Promise<string> {
    const { user_id } = await this.console.kit.app.identity.accounts.inviteUser({ account: `invited-${this.next()}@example.com` }, OPERATOR)
    return user_id
  }

  async withFactor (): Promise<string> {
    const user_id = await this.person()
    await this.console.kit.totp(user_id)
    return user_id
  }

  async linked (): Promise<string> {
    const { kit } = this.console
    const user_id = await this.person()
    const [issuer, subject] = [kit.upstream.issuer, this.next()]
    await kit.app.identity.accounts.linkIdentity(
      { user_id, epoch: 0 }, { kind: 'upstream', upstream: 'test', key: toWayKey('upstream', issuer, subject), material: { issuer, subject } }, 'Test'
    )
    return user_id
  }

  async signedIn (): Promise<string> {
    const user_id = await this.person()
    await enter(this.console, '/account', this.console.browser(), { account: await this.account(user_id), password: PASSWORD })
    return user_id
  }

  async client (data: Partial<Client> = {}): Promise<string> {
    const { clients } = this.console.kit.app.identity
    const userId = await this.person()
    const { clientId } = await clients.create(
      { data: { name: 'Shop', redirectUris: ['https://shop.example/cb'], scopes: ['read'], userId, ...data }, credentials: true }, { user_id: userId, isAdmin: true }
    )
    return clientId
  }

  /** An app that nobody has registered, and that somebody uses. The service reads few new ones within a minute. */
  async agent (): Promise<TestAgent> {
    if (++this.#agents % 8 === 0) this.console.kit.clock.advance(61_000)
    const agent = this.console.kit.agent({ client_name: `Agent ${this.next()}` })
    await agent.authorize(this.console.user)
    return agent
  }

  async blockedAgent (): Promise<TestAgent> {
    const agent = await this.agent()
    await this.console.kit.app.identity.clients.patch(agent.clientId, { data: { disabled: true } }, OPERATOR)
    return agent
  }

  /** The form as the page shows it to an administrator, with what they fill in. Of several with this action the last one. */
  async fill (path: string, action: string, fields: Record<string, string>, shownAt = path): Promise<Form> {
    const page = await this.#boss.browser.open(BASE + shownAt)
    const form = readForms(page).findLast((one) => one.action === action && (fields.url === undefined || one.fields.url === undefined || one.fields.url === fields.url))
    if (form === undefined) throw new Error(`${path}: an administrator sees no form '${action}', but ${readForms(page).map((one) => one.action).join(' ')}: ${page.title}`)
    return { ...form, fields: { ...form.fields, ...fields } }
  }
}

type Row = (things: Things) => Promise<Form>

const ofPerson = (make: (things: Things) => Promise<string>, action: string, fields: Record<string, string> = {}): Row =>
  async (things) => await things.fill(`/people/${await make(things)}`, action, fields)

const ofClient = (action: string, fields: Record<string, string> = {}, data: Partial<Client> = {}): Row =>
  async (things) => await things.fill(`/clients/${await things.client(data)}`, action, fields)

const ofAgent = (make: (things: Things) => Promise<TestAgent>, action: string): Row =>
  async (things) => await things.fill(`/clients/${encodeURIComponent((await make(things)).clientId)}`, action, {})

const ofList = (make: (things: Things) => Promise<{ clientId: string }>, action: string): Row =>
  async (things) => await things.fill('/clients?kind=documents', action, { url: (await make(things)).clientId })

const person = async (things: Things) => await things.person()
const agent = async (things: Things) => await things.agent()
const blocked = async (things: Things) => await things.blockedAgent()

/** How each form is filled in so that it does something, by the path of its page and its action. A form without a row fails the walk. */
export const FORMS: Readonly<Record<string, Row>> = {
  '/people invite': async (things) => await things.fill('/people', 'invite', { account: `new-${things.next()}@example.com` }),
  '/people create': async (things) => await things.fill('/people', 'create', { account: `new-${things.next()}@example.com`, password: PASSWORD }),
  '/people/:userId profile': ofPerson(person, 'profile', { name: 'Renamed' }),
  '/people/:userId roles': ofPerson(person, 'roles', { roles: '{"editor": true}' }),
  '/people/:userId info': ofPerson(person, 'info', { info: '{"floor": 3}' }),
  '/people/:userId attributes': ofPerson(person, 'attributes', { attributes: '{"plan": "pro"}' }),
  '/people/:userId disable': ofPerson(person, 'disable'),
  '/people/:userId enable': ofPerson(async (things) => await things.disabled(), 'enable'),
  '/people/:userId unlock': ofPerson(person, 'unlock'),
  '/people/:userId recover': ofPerson(person, 'recover'),
  '/people/:userId reset': ofPerson(async (things) => await things.withFactor(), 'reset'),
  '/people/:userId invite': ofPerson(async (things) => await things.invited(), 'invite'),
  '/people/:userId end': ofPerson(async (things) => await things.signedIn(), 'end'),
  '/people/:userId end-all': ofPerson(async (things) => await things.signedIn(), 'end-all'),
  '/people/:userId disconnect': ofPerson(async (things) => await things.linked(), 'disconnect'),
  '/people/:userId release': ofPerson(person, 'release'),
  '/people/:userId remove': async (things) => {
    const user_id = await things.person()
    return await things.fill(`/people/${user_id}`, 'remove', { typed: await things.account(user_id) })
  },
  '/clients create': async (things) => await things.fill('/clients', 'create', { name: `App ${things.next()}`, redirectUris: 'https://app.example/cb', confidential: 'yes' }),
  '/clients block': ofList(agent, 'block'),
  '/clients unblock': ofList(blocked, 'unblock'),
  '/clients refresh': ofList(agent, 'refresh'),
  '/clients/:clientId edit': ofClient('edit', { name: 'Renamed' }),
  '/clients/:clientId reveal': ofClient('reveal'),
  '/clients/:clientId renew': ofClient('renew'),
  '/clients/:clientId add-secret': ofClient('add-secret', { secretName: 'Nightly' }),
  '/clients/:clientId remove-secret': async (things) => {
    const clientId = await things.client()
    await things.console.kit.secret(clientId)
    return await things.fill(`/clients/${clientId}`, 'remove-secret', {})
  },
  '/clients/:clientId add-token': ofClient('add-token', { tokenName: 'Report', tokenScopes: 'read' }),
  '/clients/:clientId remove-token': async (things) => {
    const clientId = await things.client()
    await things.console.kit.serviceToken(clientId)
    return await things.fill(`/clients/${clientId}`, 'remove-token', {})
  },
  '/clients/:clientId disable': ofClient('disable'),
  '/clients/:clientId enable': async (things) => {
    const clientId = await things.client()
    await things.console.kit.app.identity.clients.patch(clientId, { data: { disabled: true } }, OPERATOR)
    return await things.fill(`/clients/${clientId}`, 'enable', {})
  },
  '/clients/:clientId take': ofClient('take'),
  '/clients/:clientId remove': ofClient('remove', { typed: 'Shop' }),
  '/clients/:clientId block': ofAgent(agent, 'block'),
  '/clients/:clientId unblock': ofAgent(blocked, 'unblock'),
  '/clients/:clientId refresh': ofAgent(agent, 'refresh'),
  '/jobs retry': async () => await Promise.resolve({ to: `${BASE}/jobs`, action: 'retry', fields: { action: 'retry', kind: 'mail' } }),
  '/settings mail': async (things) => await things.fill('/settings', 'mail', {}),
  '/zone set': async (things) => await things.fill('/zone', 'set', { zone: 'Europe/Berlin' })
}

/** The URLs of each page, for something that there is. A page without an entry fails the walk. */
export const PAGES: Readonly<Record<string, (things: Pick<Things, 'person' | 'client'>) => Promise<string[]> | string[]>> = {
  '/': () => ['', '?held=true'],
  '/find': () => ['/find', '/find?q=person'],
  '/people': () => ['/people', '/people?search=person', '/people?search=erso&within=yes'],
  '/people/:userId': async (things) => [`/people/${await things.person()}`],
  '/clients': () => ['/clients', '/clients?kind=documents', '/clients?search=shop'],
  '/clients/:clientId': async (things) => [`/clients/${await things.client()}`],
  '/clients/:clientId/token': async (things) => {
    const path = `/clients/${await things.client()}/token`
    return [path, `${path}?user_id=&scope=openid`]
  },
  '/events': () => ['/events', '/events?type=user.*'],
  '/jobs': () => ['/jobs', '/jobs?state=failed'],
  '/settings': () => ['/settings'],
  '/zone': () => ['/zone']
}

export interface Entry { key: string, page: ConsolePage, action: string, form: NonNullable<ConsolePage['forms']>[string] }

/** The forms of the service's pages. */
export const listForms = (pages: readonly ConsolePage[]): Entry[] => pages.flatMap((page) =>
  Object.entries(page.forms ?? {}).map(([action, form]) => ({ key: `${page.path} ${action}`, page, action, form })))

export const toOperations = (needs: ConsolePage['needs']): readonly Operation[] => needs === undefined ? [] : [needs].flat()

/** Sends a form from a browser, without following where it leads. */
export async function sendForm (page: Page, form: Form, id = randomBytes(16).toString('base64url')): Promise<{ status: number, to: string, text: string, headers: Headers }> {
  const { browser } = page
  const response = await browser.fetch(form.to, {
    method: 'POST', headers: { origin: browser.origin }, body: new URLSearchParams({ ...form.fields, xsrf: readXsrf(page), form_id: id })
  })
  return { status: response.status, to: response.headers.get('location') ?? '', text: await response.text(), headers: response.headers }
}

/** Of these collections a look at a page changes something. */
const LOOKED = new Set(['sign_in_sessions', 'sent_forms', 'feed', 'meta', 'attempts'])

/** A digest of everything that is stored, but for what a look at a page changes: the records, by their ids. */
export async function readStore ({ kit }: Pick<Harness, 'kit'>): Promise<Record<string, string[]>> {
  // A sent mail makes another event.
  for (let round = 0; round < 2; round++) await kit.flush()
  const { store } = kit.app.identity
  const all = await Promise.all(COLLECTIONS.filter(({ name }) => !LOOKED.has(name)).map(async ({ name }) => {
    const records = (await Array.fromAsync(store.collection(name).stream())).flat()
    return [name, records.map((record) => `${record.id} ${hash('sha256', JSON.stringify(record), 'base64url')}`).sort()] as const
  }))
  return Object.fromEntries(all)
}
