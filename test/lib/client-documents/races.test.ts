import t, { type Test } from 'tap'
import { createAcceptance } from '../../../lib/client-documents/accept.ts'
import type { DocumentRecord } from '../../../lib/client-documents/record.ts'
import { createDocument } from '../../../lib/client-documents/record.ts'
import { createSweep } from '../../../lib/client-documents/sweep.ts'
import type { ClientRecord } from '../../../lib/records/client.ts'
import type { GrantRecord } from '../../../lib/records/token.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { type Race, race } from '../../helpers/race.ts'
import { Scheduler } from '../../helpers/scheduler.ts'
import { openRules } from '../../helpers/services.ts'

// People decide, an operator blocks, and an unused client is removed: all at once, in every order of their store calls.

const URL = 'https://agent.example/client.json'
const DAY = 24 * 60 * 60_000

const scheduler = new Scheduler()
const { store, now, clients, records, advance } = await openRules(t, { around: scheduler.around })
const recorder = createSilentRecorder(store)
const acceptance = createAcceptance({ store, now, recorder, forgetUse: async () => {} })
const sweep = createSweep({ store, now, removeUnused: clients.removeUnused })
const documents = store.collection<DocumentRecord>('documents')
scheduler.isShared = ({ collection }) => collection === 'clients'

const make = (client_name: string) => createDocument(URL, { body: { client_name, redirect_uris: [`https://agent.example/${client_name}`], method: 'none' }, lifetime: DAY }, now, false)
const [one, two] = [make('one'), make('two')]

const block = async () => await acceptance.block(URL, one.id, clients.disable)

async function reset (): Promise<void> {
  for (const collection of ['clients', 'documents', 'grants', 'event_inbox']) await store.collection(collection).deleteMany({ before: { id: '~' } })
  await documents.put(one)
}

interface Actors {
  prepare?: () => Promise<unknown>
  actors: Record<string, () => Promise<unknown>>
  /** Of the client after the race. */
  check: (client: ClientRecord) => Promise<string | undefined> | string | undefined
  /** Names what became of it. */
  name: (client: ClientRecord) => string
}

/** Runs the actors in every order. None is refused, and the client is there in the end. */
async function play (t: Test, search: Race, { prepare, actors, check, name }: Actors): Promise<void> {
  const read = async () => (await records.clients.get(URL))!
  await race(t, scheduler, { ...search, refusals: [], name: async () => name(await read()) }, async () => {
    await reset()
    await prepare?.()
    return { actors, check: async () => await check(await read()) }
  })
}

const byName = ({ name }: ClientRecord) => name
const checkBlocked = ({ disabled_at }: ClientRecord) => disabled_at === undefined ? 'it is not blocked' : undefined

await t.test('two people allow the same document at once: there is one client', async (t) => {
  await play(t, { least: 2, outcomes: ['one'] }, {
    actors: { ann: () => acceptance.accept(one), bob: () => acceptance.accept(one) },
    name: byName,
    async check ({ document }) {
      if (document?.print !== one.print) return 'another content'
      return (await documents.get(one.id))?.expired_at === undefined ? undefined : 'its document is forgotten'
    }
  })
})

await t.test('two people allow two versions at once: the client has one of them as a whole', async (t) => {
  await play(t, { least: 2, outcomes: ['one', 'two'] }, {
    actors: { ann: () => acceptance.accept(one), bob: () => acceptance.accept(two) },
    name: byName,
    check ({ name, redirectUris, document }) {
      const version = name === 'one' ? one : two
      return document!.print === version.print && redirectUris[0] === version.body.redirect_uris[0] ? undefined : 'a mixture'
    }
  })
})

for (const [what, before, least] of [['new', '', 2], ['known', 'one', 12]] as const) {
  await t.test(`a person allows a ${what} one while an operator blocks it: it is blocked`, async (t) => {
    await play(t, { least, outcomes: [before, 'two'] }, {
      prepare: async () => { if (before !== '') await acceptance.accept(one) },
      actors: { ann: () => acceptance.accept(two), operator: block },
      name: byName,
      check: checkBlocked
    })
  })
}

/** Accepts it, and does not use it for long. */
async function leave (): Promise<void> {
  advance(-100 * DAY)
  await acceptance.accept(one)
  advance(100 * DAY)
}

const byAge = ({ createdAt }: ClientRecord) => Date.parse(createdAt) === now() ? 'stored again' : 'kept'

await t.test('an unused client is used again while it is removed: either it is there, or a later decision stores it', async (t) => {
  const touch = async () => {
    const row = await store.collection<ClientRecord>('clients').get(URL)
    if (row !== null) await acceptance.touch(row)
  }
  await play(t, { least: 350, outcomes: ['kept', 'stored again'] }, {
    prepare: leave,
    actors: { ann: () => acceptance.accept(two), touch, sweep },
    name: byAge,
    check: ({ document }) => document?.print === two.print ? undefined : 'the decision is lost'
  })
})

await t.test('a client that is blocked while it is removed stays', async (t) => {
  await play(t, { least: 18, outcomes: ['kept', 'stored again'] }, { prepare: leave, actors: { operator: block, sweep }, name: byAge, check: checkBlocked })
})

await t.test('a client with a session is not removed', async (t) => {
  await reset()
  await leave()
  await store.collection<GrantRecord>('grants').put({
    id: 'g', user_id: 'ann', client_id: URL, user_epoch: 0, client_epoch: 0, created_at: '2126-01-01T00:00:00.000Z', expired_at: '2199-01-01T00:00:00.000Z'
  } as GrantRecord)
  await sweep()
  t.not(await records.clients.get(URL), null)
})
