import { hash } from 'node:crypto'
import { createTickets } from '../../lib/tickets/tickets.ts'
import { type UserRecord, findMailbox } from '../../lib/records/user.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createApp, startIdentity } from '../../testing/kit.ts'
import { type Choose, Scheduler, createRandom } from '../helpers/scheduler.ts'
import { wrapStore } from '../helpers/wrap-store.ts'
import { Browser, type Page } from '../oidc/browser.ts'

const ADMIN = { user_id: 'admin', isAdmin: true }

/** Where the decisions are. What is counted, recorded and mailed decides nothing. */
const SHARED = new Set(['users', 'tickets', 'grants', 'access_tokens', 'refresh_tokens', 'sign_in_sessions'])

/** The status of each actor's answer. */
type Answers = Record<string, number>

/** One race: its actors, and the check of its outcome. */
interface Scene {
  actors: Record<string, () => Promise<number>>
  /** Returns every possible problem by name, and whether it occurred. */
  check: (answers: Answers) => Promise<Record<string, boolean>>
}

export interface InterleavingResult {
  runs: number
  /** Different sequences of store calls. */
  orders: number
  /** How often each outcome was seen. */
  outcomes: Record<string, number>
  /** What went wrong, with the seed and the calls in their order. */
  problems: string[]
}

const movesEpoch = (change: unknown) => (change as { increment?: { epoch?: number } } | undefined)?.increment?.epoch === 1

const isDone = (status: number | undefined) => status === 200 || status === 204 || status === 303

/** Races over HTTP: the seed decides about the scene, and about the order of all store calls in it. */
async function openRaces (t: { teardown: (close: () => Promise<void>) => unknown }, database: string) {
  const scheduler = new Scheduler()
  scheduler.waitsForAll = true
  scheduler.isShared = ({ collection, method }) => SHARED.has(collection) && method !== 'next' && method !== 'return'
  const inner = await openStore(database, { collections: COLLECTIONS, now: Date.now })
  const app = createApp()
  app.addHook('onRequest', (request, _reply, done) => {
    const { 'x-actor': actor } = request.headers
    if (typeof actor === 'string') scheduler.as(actor, done)
    else done()
  })
  const kit = await startIdentity({ app, store: wrapStore(inner, scheduler.around), rateLimit: false, signUp: true })
  t.teardown(async () => {
    await kit.close()
    await inner.close()
  })
  const { users, clients, accounts } = app.identity
  const { url } = await kit.listen()
  const records = inner.collection<UserRecord>('users')
  const tickets = createTickets({ store: inner, now: kit.clock.now })
  const admin = await kit.mint({ roles: ['admin'] })
  const { clientId } = await clients.create({ data: { name: 'App', redirectUris: ['https://app.example/cb'], scopes: ['read'], grants: ['code', 'refresh'] }, credentials: true }, { ...ADMIN, user_id: admin.user_id })
  const { clientSecret = '' } = await clients.require(clientId, ADMIN)
  const basic = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`

  const named = (actor?: string): Record<string, string> => actor === undefined ? {} : { 'x-actor': actor }

  async function call (method: string, path: string, body: object, headers: Record<string, string>): Promise<number> {
    const response = await fetch(`${url}/api/v1${path}`, { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } })
    await response.arrayBuffer()
    return response.status
  }

  async function submit (path: string, fields: Record<string, string>, actor?: string, browser = new Browser(url)): Promise<number> {
    const response = await browser.fetch(path, { method: 'POST', body: new URLSearchParams(fields), headers: { origin: url, ...named(actor) } })
    await response.arrayBuffer()
    return response.status
  }

  /** Uses a link that sets a password: by the API, or by its page. */
  const setPassword = async (token: string, password: string, byPage: boolean, actor?: string, path = '/account/reset') => byPage
    ? await submit(path, { token, password }, actor)
    : await call('POST', '/auth/reset', { data: { token, password } }, named(actor))

  const readXsrf = (page: Page) => /name="xsrf" value="([^"]*)"/.exec(page.text)?.[1] ?? ''

  async function refresh (token: string, actor?: string): Promise<{ status: number, access_token?: string, refresh_token?: string }> {
    const response = await fetch(`${url}/api/v1/auth/token`, {
      method: 'POST', body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: token }), headers: { authorization: basic, ...named(actor) }
    })
    return { status: response.status, ...await response.json() as object }
  }

  let count = 0

  /** A person who is signed in in a browser and in an app. */
  async function createPerson () {
    const account = `ann${process.pid}-${count++}@example.com`
    const { user_id } = await users.create({ data: { account, password: 'old' } })
    const browser = new Browser(url)
    const form = await browser.open('/account')
    const home = await form.submit({ account, password: 'old' })
    const session = await kit.mint({ user: user_id, client: clientId, refresh: true })
    const browsers = [browser]
    const accessTokens = [session.access_token]
    const refreshTokens = [session.refresh_token!]
    let late: Browser | undefined
    const isPassword = async (password: string) => await users.verify((await records.get(user_id))!.account, password) !== null
    return {
      user_id,
      account,
      browser,
      xsrf: readXsrf(home),
      headers: session.headers,
      isPassword,
      async issue (purpose: 'reset', address = account): Promise<string> {
        return await tickets.issue({ purpose, user_id, user_epoch: (await records.get(user_id))!.epoch, address, mailed: true })
      },

      /** An actor who signs in with the old password, or uses the old session, during the race. Its results are checked later. */
      async createBystander (choose: Choose): Promise<Record<string, () => Promise<number>>> {
        const kind = choose(3)
        if (kind === 0) {
          const other = late = new Browser(url)
          const xsrf = readXsrf(await other.open('/account'))
          browsers.push(other)
          return { 'sign-in': async () => await submit('/account/sign-in', { xsrf, account, password: 'old' }, 'sign-in', other) }
        }
        if (kind === 1) {
          return {
            async refresh () {
              const answer = await refresh(refreshTokens[0]!, 'refresh')
              if (answer.access_token !== undefined) accessTokens.push(answer.access_token)
              if (answer.refresh_token !== undefined) refreshTokens.unshift(answer.refresh_token)
              return answer.status
            }
          }
        }
        return {}
      },

      /** The browser that signs in, if it read the user after this actor had ended all sessions: it is not one of those. */
      findLate (actor: string): Browser | undefined {
        const read = scheduler.log.findIndex((step) => step.actor === 'sign-in' && step.method === 'getBy' && step.args[0] === 'account')
        const ended = scheduler.log.findLastIndex((step) => step.actor === actor && step.collection === 'users' && movesEpoch(step.args[1]))
        return read > ended ? late : undefined
      },

      /** Finds the links, sessions and tokens from before the race, or of the bystander, that are still valid. */
      async findSurvivors ({ links, renewed, old = true }: { links: string[], renewed?: Browser | undefined, old?: boolean }): Promise<Record<string, boolean>> {
        const dead: Record<string, boolean> = {}
        for (const token of accessTokens) {
          const { status } = await fetch(`${url}/api/v1/auth/tokeninfo`, { headers: { authorization: `Bearer ${token}` } })
          dead['an access token has survived'] ||= status !== 401
        }
        for (const token of refreshTokens) dead['a refresh token has survived'] ||= (await refresh(token)).status === 200
        for (const one of browsers) {
          if (one === renewed) continue
          dead['a browser is still signed in'] ||= !(await one.open('/account')).title.startsWith('Sign in')
        }
        for (const token of links) dead['a link has survived'] ||= isDone(await setPassword(token, 'survivor', false))
        if (old) dead['the old password has survived'] = await isPassword('old')
        return dead
      }
    }
  }

  const SCENES: Record<string, (choose: Choose) => Promise<Scene>> = {
    async 'reset and reset' (choose) {
      const person = await createPerson()
      const links = [await person.issue('reset'), await person.issue('reset')]
      const [byPage, other] = [choose(2) === 1, choose(2) === 1]
      return {
        actors: {
          one: async () => await setPassword(links[0]!, 'one', byPage, 'one'),
          two: async () => await setPassword(links[1]!, 'two', other, 'two'),
          ...await person.createBystander(choose)
        },
        async check ({ one, two }) {
          const winner = isDone(one) ? 'one' : 'two'
          return {
            'not one winner': isDone(one) === isDone(two) || (isDone(one) ? two : one) !== 410,
            "not the winner's password": !await person.isPassword(winner),
            ...await person.findSurvivors({ links })
          }
        }
      }
    },

    async 'reset and password change' (choose) {
      const person = await createPerson()
      const links = [await person.issue('reset')]
      const byPage = choose(2) === 1
      const by = (['themselves', 'page', 'admin'] as const)[choose(3)]!
      const changes = {
        themselves: async () => await call('PATCH', '/user', { data: { password: 'changed', current_password: 'old' } }, { ...person.headers, ...named('change') }),
        page: async () => await submit('/account/password', { xsrf: person.xsrf, current_password: 'old', password: 'changed' }, 'change', person.browser),
        admin: async () => await call('PATCH', `/user/${person.user_id}`, { data: { password: 'changed' } }, { ...admin.headers, ...named('change') })
      }
      return {
        actors: { reset: async () => await setPassword(links[0]!, 'reset', byPage, 'reset'), change: changes[by], ...await person.createBystander(choose) },
        async check ({ reset, change }) {
          // Whoever has no power over the password any more is sent to the sign-in, or refused.
          const isChanged = isDone(change) && await person.isPassword('changed')
          return {
            'not one winner': by === 'admin' ? !isChanged : isDone(reset) === isChanged,
            'the link was refused in another way': !isDone(reset) && reset !== 410,
            "not the winner's password": !await person.isPassword(isChanged ? 'changed' : 'reset'),
            ...await person.findSurvivors({ links, renewed: by === 'page' && isChanged ? person.browser : undefined })
          }
        }
      }
    },

    async 'reset and disabling' (choose) {
      const person = await createPerson()
      const links = [await person.issue('reset')]
      const byPage = choose(2) === 1
      return {
        actors: {
          reset: async () => await setPassword(links[0]!, 'reset', byPage, 'reset'),
          disable: async () => await call('PATCH', `/user/${person.user_id}`, { disable: true }, { ...admin.headers, ...named('disable') }),
          ...await person.createBystander(choose)
        },
        async check ({ reset, disable }) {
          const isDisabled = (await records.get(person.user_id))?.disabled_at !== undefined
          await users.patch(person.user_id, { disable: false }, ADMIN)
          return {
            'the user is not disabled': !isDone(disable) || !isDisabled,
            'the link was refused in another way': !isDone(reset) && reset !== 410,
            'not the password of the link that was used': !await person.isPassword(isDone(reset) ? 'reset' : 'old'),
            ...await person.findSurvivors({ links, old: isDone(reset) })
          }
        }
      }
    },

    async 'reset and undo of a change of address' (choose) {
      const person = await createPerson()
      const { user_id, account } = person
      const thief = `thief-${account}`
      await accounts.changeAddress(user_id, thief)
      await accounts.verifyAddress((await kit.mails.next({ to: thief })).token!, user_id)
      const { token: undo = '' } = await kit.mails.next({ to: account })
      const links = [await person.issue('reset', thief)]
      const [byPage, other] = [choose(2) === 1, choose(2) === 1]
      const undoBy = async (actor?: string) => other ? await submit('/account/undo', { token: undo }, actor) : await call('POST', '/auth/undo', { data: { token: undo } }, named(actor))
      return {
        actors: {
          reset: async () => await setPassword(links[0]!, 'reset', byPage, 'reset'),
          undo: async () => await undoBy('undo'),
          ...await person.createBystander(choose)
        },
        async check (answers) {
          const user = await records.get(user_id)
          const survivors = await person.findSurvivors({ links, old: isDone(answers.reset), renewed: person.findLate('undo') })
          // A notice of the reset may be there too.
          const restored = (await kit.mails.all()).find(({ to, token }) => to === account && token !== undefined)?.token ?? ''
          const isBack = isDone(await setPassword(restored, 'mine', false))
          return {
            'not undone': !isDone(answers.undo),
            'the link was refused in another way': !isDone(answers.reset) && answers.reset !== 410,
            'the former address is not restored': user === null || findMailbox(user) !== account,
            'the undo can be used again': isDone(await undoBy()),
            'the owner does not come back': !isBack || !await person.isPassword('mine'),
            "the thief's password has survived": await person.isPassword('reset'),
            ...survivors
          }
        }
      }
    },

    async 'invitation and sign-up' (choose) {
      const account = `bob${process.pid}-${count++}@example.com`
      const links = await Promise.all(Array.from({ length: 1 + choose(2) }, async () => await tickets.issue({ purpose: 'sign-up', address: account, mailed: true })))
      const byPage = choose(2) === 1
      const signUps = links.map((token, index) => [`sign-up ${index}`, async () => await setPassword(token, `mine ${index}`, byPage, `sign-up ${index}`, '/account/sign-up')] as const)
      return {
        actors: {
          invitation: async () => await call('POST', '/user/invite', { data: { account } }, { ...admin.headers, ...named('invitation') }),
          ...Object.fromEntries(signUps)
        },
        async check (answers) {
          const winners = Object.keys(answers).filter((actor) => isDone(answers[actor]))
          const user = await records.getBy('account', account)
          const isInvited = winners[0] === 'invitation'
          const index = winners[0]?.at(-1)
          const dead: Record<string, boolean> = {}
          for (const token of links) dead['a link has survived'] ||= isDone(await setPassword(token, 'survivor', false))
          return {
            'not one winner': winners.length !== 1,
            "not the winner's account": user === null || (user.invited_at !== undefined) !== isInvited || (user.email_verified_at !== undefined) === isInvited,
            "not the winner's password": isInvited ? user?.password !== '' : await users.verify(account, `mine ${index}`) === null,
            ...dead
          }
        }
      }
    }
  }

  return { scheduler, scenes: Object.entries(SCENES), settle: async () => await kit.mails.all() }
}

/**
 * Runs races, each with the next seed.
 * @param seed of the first run: with one run it repeats that one
 */
export async function interleave (t: Parameters<typeof openRaces>[0], { database, runs, seed }: { database: string, runs: number, seed: number }): Promise<InterleavingResult> {
  const { scheduler, scenes, settle } = await openRaces(t, database)
  const orders = new Set<string>()
  const result: InterleavingResult = { runs, orders: 0, outcomes: {}, problems: [] }
  for (let run = seed; run < seed + runs; run++) {
    const choose = createRandom(run)
    // The first numbers of neighbouring seeds resemble each other.
    for (let skipped = 0; skipped < 8; skipped++) choose(2)
    const [name, open] = scenes[run % scenes.length]!
    const { actors, check } = await open(choose)
    const answers: Answers = {}
    const started = Object.entries(actors)
    started.push(...started.splice(0, choose(started.length)))
    // Mostly one goes on for a while, so that long operations also end before short ones.
    const isSteady = choose(3) > 0
    const pick: Choose = (count) => isSteady && choose(4) > 0 ? count - 1 : choose(count)
    await scheduler.run(Object.fromEntries(started.map(([actor, act]) => [actor, async () => { answers[actor] = await act() }])), pick)
    const schedule = scheduler.order
    const found = await check(answers)
    const problems = Object.keys(found).filter((problem) => found[problem])
    const missing = Object.keys(actors).filter((actor) => answers[actor] === undefined || answers[actor] >= 500)
    if (problems.length + missing.length > 0) result.problems.push(`seed ${run}, ${name}: ${[...problems, ...missing.map((actor) => `${actor} failed`)].join('; ')}; ${JSON.stringify(answers)}\n  ${schedule.join('\n  ')}`)
    orders.add(hash('sha256', `${name} ${schedule.join(' ')}`, 'base64url').slice(0, 16))
    const outcome = `${name}: ${Object.entries(answers).sort().map(([actor, status]) => `${actor} ${isDone(status) ? 'done' : status}`).join(', ')}`
    result.outcomes[outcome] = (result.outcomes[outcome] ?? 0) + 1
    if (run % 500 === 499) await settle()
  }
  return { ...result, orders: orders.size }
}
