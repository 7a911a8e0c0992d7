import t from 'tap'
import { createAcceptance } from '../../../lib/documents/accept.ts'
import type { DocumentRecord } from '../../../lib/documents/record.ts'
import { createDocument } from '../../../lib/documents/record.ts'
import { createSweep } from '../../../lib/documents/sweep.ts'
import type { GrantRecord } from '../../../lib/records.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { Scheduler, exhaust } from '../../helpers/scheduler.ts'
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

async function tryOrders (prepare: () => Promise<unknown>, actors: Record<string, () => Promise<unknown>>, check: () => Promise<string | undefined>) {
  const problems: string[] = []
  const { orders: runs, complete } = await exhaust({ least: 1, most: 20_000 }, async (choose) => {
    for (const collection of ['clients', 'documents', 'grants', 'event_inbox']) await store.collection(collection).deleteMany({ before: { id: '~' } })
    await documents.put(one)
    await prepare()
    await scheduler.run(actors, choose)
    const problem = await check()
    if (problem !== undefined) problems.push(`${problem}\n${scheduler.log.map(({ actor, method }) => `${actor}: ${method}`).join('\n')}`)
  })
  t.comment(`${runs} orders`)
  t.ok(complete)
  t.strictSame(problems.slice(0, 3), [])
}

await t.test('two people allow the same document at once: there is one client', async () => {
  await tryOrders(async () => {}, { ann: () => acceptance.accept(one), bob: () => acceptance.accept(one) }, async () => {
    const found = await records.clients.get(URL)
    if (found?.name !== 'one' || found.document?.print !== one.print) return 'another content'
    return (await documents.get(one.id))?.expired_at === undefined ? undefined : 'its document is forgotten'
  })
})

await t.test('two people allow two versions at once: the client has one of them as a whole', async () => {
  await tryOrders(async () => {}, { ann: () => acceptance.accept(one), bob: () => acceptance.accept(two) }, async () => {
    const { name, redirectUris, document } = (await records.clients.get(URL))!
    const version = name === 'one' ? one : two
    return document!.print === version.print && redirectUris[0] === version.body.redirect_uris[0] ? undefined : 'a mixture'
  })
})

await t.test('a person allows it while an operator blocks it: it is blocked', async () => {
  for (const isKnown of [false, true]) {
    await tryOrders(async () => { if (isKnown) await acceptance.accept(one) }, { ann: () => acceptance.accept(two), operator: block }, async () =>
      (await records.clients.get(URL))?.disabled_at === undefined ? 'it is not blocked' : undefined)
  }
})

await t.test('an unused client is used again while it is removed: either it is there, or a later decision stores it', async () => {
  const unused = { ...one, body: { ...one.body } }
  await tryOrders(async () => {
    advance(-100 * DAY)
    await acceptance.accept(unused)
    advance(100 * DAY)
  }, { ann: () => acceptance.accept(two), touch: async () => { const row = await store.collection('clients').get(URL); if (row !== null) await acceptance.touch(row as never) }, sweep }, async () =>
    (await records.clients.get(URL))?.document?.print === two.print ? undefined : 'the decision is lost')
})

await t.test('a client with a session, or a blocked one, is not removed, also if that comes meanwhile', async () => {
  const grant = { id: 'g', user_id: 'ann', client_id: URL, user_epoch: 0, client_epoch: 0, created_at: '2126-01-01T00:00:00.000Z', expired_at: '2199-01-01T00:00:00.000Z' }
  const prepare = async () => {
    advance(-100 * DAY)
    await acceptance.accept(one)
    advance(100 * DAY)
  }
  await tryOrders(prepare, { operator: block, sweep }, async () => (await records.clients.get(URL))?.disabled_at === undefined ? 'it is not blocked' : undefined)
  await tryOrders(async () => {
    await prepare()
    await store.collection<GrantRecord>('grants').put(grant as never)
  }, { sweep }, async () => await records.clients.get(URL) === null ? 'it was removed' : undefined)
})
