import t, { type Test } from 'tap'
import type { ClientRecord } from '../../../lib/records/client.ts'
import { EMPTY_REGISTRY, type Registry } from '../../../lib/resources/registry.ts'
import type { Actor } from '../../../lib/roles.ts'
import type { Caller, MintedTokens } from '../../../lib/tokens/tokens.ts'
import { rotate } from '../../helpers/redeem.ts'
import { race } from '../../helpers/race.ts'
import { type Choose, Scheduler, type Step, areIndependent, exhaust } from '../../helpers/scheduler.ts'
import { openRules } from '../../helpers/services.ts'

// Some seconds of work, on a machine with nothing else to do.
t.setTimeout(180_000)

const ADMIN: Actor = { user_id: 'admin', isAdmin: true }
const RESOURCE = { id: 'https://api.example/', name: 'API', scopes: { wanted: 'do what is wanted' } }

const scheduler = new Scheduler()
const { resources, clients, users, tokens, records } = await openRules(t, { around: scheduler.around, refreshTtl: 7200 })
const { user_id } = await users.create({ data: { account: 'ann', password: 'p' } })
const OWNER: Actor = { user_id, isAdmin: false }

/** A client with a scope that is free, or that a resource declares, and a session of it. */
interface Scene {
  client_id: string
  /** Of the declared scope. */
  resourceId?: string
  session: Required<MintedTokens>
}

async function setScene (isDeclared: boolean): Promise<Scene> {
  await records.clients.deleteMany({ before: { id: '~' } })
  await records.resources.put(EMPTY_REGISTRY)
  const { resourceId } = isDeclared ? await resources.create({ data: RESOURCE }) : {}
  const { clientId: client_id } = await clients.create({ data: { redirectUris: [], scopes: ['own', 'wanted'], name: 'old', userId: user_id } }, ADMIN)
  const session = await tokens.mint({ user_id, client_id, refresh: true, ...(isDeclared && { resource: RESOURCE.id }) }) as Required<MintedTokens>
  return { client_id, session, ...(resourceId !== undefined && { resourceId }) }
}

/** An actor that tries to get the scope. Tokens that are issued to it go to `told`. */
type Racer = (scene: Scene, told: MintedTokens[]) => Promise<unknown>

/** The answers to a token that was used while the race went on, with the number of steps before. */
const answers: { step: number, scopes: readonly string[] }[] = []

const RACERS: Record<string, Racer> = {
  use: async ({ session }) => {
    const { token } = await tokens.authenticate(session.access_token)
    answers.push({ step: scheduler.log.findIndex(({ actor, method }) => actor.startsWith('use') && method === 'getLinked'), scopes: token.scopes })
  },
  refresh: async ({ session }, told) => { told.push(await rotate(tokens, session.refresh_token)) },
  mint: async ({ client_id }, told) => { told.push(await tokens.mint({ user_id, client_id, scopes: ['wanted'] })) },
  rename: ({ client_id }) => clients.patch(client_id, { data: { name: 'new' } }, OWNER),
  'other scopes': ({ client_id }) => clients.patch(client_id, { data: { scopes: ['own', 'other'] } }, OWNER),
  patch: ({ client_id }) => clients.patch(client_id, { data: { scopes: ['wanted'] } }, OWNER),
  'patch by an admin': ({ client_id }) => clients.patch(client_id, { data: { scopes: ['wanted'] } }, ADMIN),
  disable: ({ client_id }) => clients.patch(client_id, { data: { disabled: true } }, ADMIN),
  create: async (_scene, told) => {
    const { clientId: client_id } = await clients.create({ data: { redirectUris: [], scopes: ['wanted'], name: 'n' } }, OWNER)
    told.push(await tokens.mint({ user_id, client_id }))
  }
}

const isDecisive = ({ collection, method, args }: Step) => collection === 'resources' && method === 'update' && (args[1] as { increment?: object }).increment !== undefined

/** The caller of a token; null when it has ended. */
async function look ({ access_token }: MintedTokens): Promise<Caller | null> {
  try {
    return await tokens.authenticate(access_token)
  } catch {
    return null
  }
}

interface Outcome { problem?: string | undefined, done: string[], client: ClientRecord, registry: Registry }

/** One order of events. No token without the resource's audience shows the scope once it is declared. */
async function play (act: (scene: Scene) => Promise<unknown>, names: string[], choose: Choose, isDeclared = false): Promise<Outcome> {
  const scene = await setScene(isDeclared)
  answers.length = 0
  const done: string[] = []
  const told: MintedTokens[] = [scene.session]
  const actors = names.map((name, index): [string, () => Promise<unknown>] => [`${name} ${index}`, async () => {
    await RACERS[name]!(scene, told)
    done.push(name)
  }])
  await scheduler.run({ declarer: async () => { await act(scene); done.push('declarer') }, ...Object.fromEntries(actors) }, choose)
  const decided = scheduler.log.findIndex((step) => isDecisive(step))
  const callers = (await Promise.all(told.map(look))).filter((caller) => caller !== null)
  const problems = {
    'the declaration failed': !done.includes('declarer'),
    'a token shows the scope': callers.some(({ token }) => token.scopes.includes('wanted')),
    'a token showed the scope after the write': answers.some(({ step, scopes }) => step > decided && scopes.includes('wanted')),
    'a token of the disabled client is valid': done.includes('disable') && callers.some(({ client }) => client.clientId === scene.client_id)
  }
  const problem = Object.entries(problems).find(([, isSo]) => isSo)?.[0]
  return { problem, done, client: (await records.clients.get(scene.client_id))!, registry: (await records.resources.get(EMPTY_REGISTRY.id))! }
}

function check (t: Test, problem: string | undefined, name: string): void {
  if (problem !== undefined) t.fail(`${name}: ${problem}`, { order: scheduler.order })
}

const declare = () => resources.create({ data: RESOURCE })
const remove = ({ resourceId = '' }: Scene) => resources.remove(resourceId)
const removeScope = ({ resourceId = '' }: Scene) => resources.patch(resourceId, { data: { scopes: {} } })

// The scenes have one user, who does not change.
scheduler.isShared = ({ collection, method }) => collection === 'clients' || collection === 'resources' || method === 'getLinked'

t.test('without a declaration, each racer gets the scope', async (t) => {
  for (const name of ['use', 'refresh', 'mint', 'create', 'patch', 'rename']) {
    const scene = await setScene(false)
    const told: MintedTokens[] = [scene.session]
    await RACERS[name]!(scene, told)
    for (const token of told) t.ok((await look(token))?.token.scopes.includes('wanted'), name)
  }
  const scene = await setScene(true)
  const { access_token } = await rotate(tokens, scene.session.refresh_token)
  t.match(await tokens.authenticate(access_token), { token: { scopes: ['wanted'], audience: RESOURCE.id } }, 'refresh at the resource')
})

const [DONE, REFUSED, BOTH] = [['done'], ['refused'], ['done', 'refused']]

interface Declaration {
  act: (scene: Scene) => Promise<unknown>
  isDeclared: boolean
  /** For each racer: the fewest orders, and what becomes of it. */
  races: Record<string, [least: number, outcomes: string[]]>
}

const DECLARATIONS: Record<string, Declaration> = {
  'declaring a name': {
    act: declare,
    isDeclared: false,
    races: {
      use: [2, DONE],
      refresh: [3, DONE],
      mint: [3, BOTH],
      rename: [11, DONE],
      'other scopes': [11, DONE],
      patch: [5, BOTH],
      'patch by an admin': [11, DONE],
      disable: [11, DONE],
      create: [10, BOTH]
    }
  },
  'removing a resource': {
    act: remove,
    isDeclared: true,
    races: {
      use: [2, BOTH],
      refresh: [3, BOTH],
      mint: [3, REFUSED],
      rename: [2, BOTH],
      'other scopes': [2, BOTH],
      patch: [2, REFUSED],
      'patch by an admin': [5, BOTH],
      disable: [11, DONE],
      create: [2, REFUSED]
    }
  },
  'removing a scope': {
    act: removeScope,
    isDeclared: true,
    races: {
      use: [2, DONE],
      refresh: [3, DONE],
      mint: [3, REFUSED],
      rename: [2, BOTH],
      'other scopes': [2, BOTH],
      patch: [2, REFUSED],
      'patch by an admin': [5, BOTH],
      disable: [11, DONE],
      create: [2, REFUSED]
    }
  }
}

for (const [name, { act, isDeclared, races }] of Object.entries(DECLARATIONS)) {
  t.test(`${name}: every order with one racer`, async (t) => {
    t.strictSame(Object.keys(races), Object.keys(RACERS))
    for (const [racer, [least, outcomes]] of Object.entries(races)) {
      await exhaust({ least, outcomes, commute: areIndependent }, async (choose) => {
        const { problem, done, client, registry } = await play(act, [racer], choose, isDeclared)
        check(t, problem, racer)
        const { declared = {}, scopes } = client
        // A racer that read the registry before may leave the name on the client, where it has no effect.
        if (!racer.startsWith('patch')) check(t, scopes.includes('wanted') ? 'the client still carries the scope' : undefined, racer)
        if (racer === 'rename') check(t, done.includes('rename') && client.name !== 'new' ? 'the patch is lost' : undefined, racer)
        if (racer === 'other scopes') check(t, done.includes(racer) && scopes.join() !== 'other,own' ? 'the patch is lost' : undefined, racer)
        if (racer === 'patch' && !isDeclared) check(t, declared.wanted !== undefined ? 'an owner was given the declared scope' : undefined, racer)
        if (declared.wanted !== undefined && isDeclared) check(t, registry.names.wanted === declared.wanted ? 'still declared' : undefined, racer)
        return done.includes(racer) ? 'done' : 'refused'
      })
    }
  })

  t.test(`${name}: random orders with many racers`, async (t) => {
    await exhaust({ least: 160, most: 0, random: 200 }, async (choose) => {
      const { problem } = await play(act, ['use', 'refresh', 'mint', 'patch', 'rename', 'other scopes', 'create', 'patch by an admin', 'disable'], choose, isDeclared)
      check(t, problem, 'many')
    })
  })
}

t.test('two declare one name: in every order one wins', async (t) => {
  await race(t, scheduler, { least: 24, outcomes: ['one', 'two'], refusals: ['RESOURCE_EXIST'] }, async () => {
    await setScene(false)
    const declareAs = (name: string) => async () => await resources.create({ data: { ...RESOURCE, id: `urn:example:${name}` } })
    return {
      actors: { one: declareAs('one'), two: declareAs('two') },
      check: async () => (await records.resources.get(EMPTY_REGISTRY.id))?.revision === 1 ? undefined : 'both were written'
    }
  })
})

t.test('a scope that an admin gives after the declaration stays', async () => {
  await exhaust({ least: 25, outcomes: ['before', 'given'] }, async (choose) => {
    const { client, registry, done } = await play(declare, ['patch by an admin'], choose)
    const read = scheduler.log.findLastIndex(({ actor, collection }) => actor.startsWith('patch') && collection === 'resources')
    if (!done.includes('patch by an admin') || read < scheduler.log.findIndex((step) => isDecisive(step))) return 'before'
    if (client.declared?.wanted === undefined) return 'taken again'
    const { access_token } = await tokens.mint({ user_id, client_id: client.id, resource: RESOURCE.id, scopes: ['wanted'] })
    const { token } = await tokens.authenticate(access_token)
    return token.audience === RESOURCE.id && token.scopes.includes('wanted') && client.declared.wanted === registry.names.wanted ? 'given' : 'not given'
  })
})
