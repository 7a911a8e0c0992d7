import t from 'tap'
import { changeRecord } from '../../../lib/change-record.ts'
import type { ClientRecord } from '../../../lib/records/client.ts'
import { EMPTY_REGISTRY, type Registry, type ResourceEntry } from '../../../lib/resources/registry.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { race } from '../../helpers/race.ts'
import { type RuleRow, checkRules } from '../../helpers/replaced-record.ts'
import { Scheduler } from '../../helpers/scheduler.ts'
import { openRules } from '../../helpers/services.ts'

const ADMIN = { user_id: 'admin', isAdmin: true }
const RESOURCE = { id: 'https://api.example/', name: 'API', scopes: { wanted: 'do what is wanted' } }
const OTHER = { ...RESOURCE, id: 'https://other.example/' }

const scheduler = new Scheduler()
/** The client at the time at which the name was declared. */
let seen: ClientRecord | null = null
const { store, resources, clients, records } = await openRules(t, {
  around: (call, run) => scheduler.around(call, call.collection === 'resources' && call.method === 'update' ? async () => await watch(run) : run)
})
const isDeclared = (registry: Registry): boolean => Object.values(registry.resources).some(({ uri }) => uri === RESOURCE.id)
let client_id = ''

async function watch (run: () => unknown): Promise<unknown> {
  const written = await run() as Registry | null
  if (written !== null && isDeclared(written)) seen = await records.clients.get(client_id)
  return written
}

async function empty (): Promise<void> {
  await records.clients.deleteMany({ before: { id: '~' } })
  await records.resources.put(EMPTY_REGISTRY)
}

scheduler.isShared = ({ collection, method }) => (collection === 'resources' || collection === 'clients') && method !== 'next'

/** What an administrator does with a resource, until an option of the app declares it. */
const RULES: Record<string, Pick<RuleRow, 'excludes'> & { act: (id: string) => Promise<unknown>, isWritten: (entry: ResourceEntry | undefined) => boolean }> = {
  'a resource is changed': { act: async (id) => await resources.patch(id, { data: { name: 'new' } }), isWritten: (entry) => entry?.name === 'new' },
  'a resource is removed': { act: async (id) => await resources.remove(id), isWritten: (entry) => entry === undefined, excludes: true }
}
const recorder = createSilentRecorder(store)
const gone = () => new Error('the resource is gone')

async function fix (id: string): Promise<void> {
  await changeRecord({ collection: store.collection<Registry>('resources'), recorder, what: 'the resources', notFound: gone }, EMPTY_REGISTRY.id, ({ resources: { [id]: entry, ...others } }) => {
    if (entry === undefined) throw gone()
    return { set: { resources: { ...others, [id]: { ...entry, fixed: true } } } }
  })
}

const toRow = ({ act, isWritten, excludes }: typeof RULES[string]): RuleRow => ({
  refusal: 'ErrPerm',
  ...(excludes && { excludes }),
  async prepare () {
    await empty()
    const { resourceId } = await resources.create({ data: RESOURCE })
    const read = async () => (await records.resources.get(EMPTY_REGISTRY.id))!.resources[resourceId]
    return { act: async () => await act(resourceId), change: async () => await fix(resourceId), isWritten: async () => isWritten(await read()) }
  }
})
await checkRules(t, scheduler, 'resources', Object.fromEntries(Object.entries(RULES).map(([what, rule]) => [`${what}, until an option declares it`, toRow(rule)])))

// A client may have a reserved name: of a removal whose clean-up was interrupted. So all clients are read before the name is declared.
await t.test('a reserved name is declared when no client has it, however late a client got it', async (t) => {
  // The other administrator does everything between two calls of this one.
  scheduler.waitsForAll = true
  await race(t, scheduler, { least: 5, outcomes: ['admin, declarer'] }, async () => {
    await empty()
    seen = null
    const { resourceId } = await resources.create({ data: RESOURCE })
    await resources.remove(resourceId)
    client_id = (await clients.create({ data: { redirectUris: [], scopes: [], name: 'app' } }, ADMIN)).clientId
    return {
      actors: {
        declarer: async () => await resources.create({ data: RESOURCE }),
        async admin () {
          // The one call that the scheduler puts anywhere: a write, because it stands for what follows.
          await store.collection('resources').update('nothing', {})
          await scheduler.as('at once', async () => {
            if (isDeclared((await records.resources.get(EMPTY_REGISTRY.id))!)) return
            const { resourceId } = await resources.create({ data: OTHER })
            await clients.patch(client_id, { data: { scopes: ['wanted'] } }, ADMIN)
            const { declared = {} } = (await records.clients.get(client_id))!
            await resources.remove(resourceId)
            // As if the clean-up had been interrupted.
            await records.clients.update(client_id, { set: { scopes: ['wanted'], declared }, increment: { revision: 1 } })
          })
        }
      },
      check: () => seen?.scopes.includes('wanted') === false ? undefined : 'a client has the name when it is declared'
    }
  })
})
