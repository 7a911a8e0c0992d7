import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { Client } from '../../schemas/client.ts'
import { IdentityError } from '../../lib/errors.ts'
import { type ClientRecord, createClientRecord } from '../../lib/records/client.ts'
import type { Actor } from '../../lib/roles.ts'
import { forEachStore } from '../helpers/build.ts'
import { checkProperty } from '../helpers/property.ts'

/**
 * A client may have no owner. Then it belongs to nobody: the model below says who owns a client, and every operation that compares owners must
 * agree, also for a caller without an id. Stores treat an absent key, null and '' differently, so it runs on each.
 */
const owners = fc.constantFrom(undefined, '', 'ann', 'bob', 'undefined', 'null')
const callers = fc.constantFrom<string | undefined>(undefined, '', 'ann', 'bob', 'nobody', 'undefined', 'null')
const owns = (caller: string | undefined, owner: string | undefined) => Boolean(owner) && owner === caller

const outcome = async (call: Promise<unknown>): Promise<string> => await call.then(() => 'done', (error: unknown) => {
  if (error instanceof IdentityError) return error.code
  throw error
})

async function readAll (batches: AsyncIterable<{ clientId: string }[]>): Promise<string[]> {
  return (await Array.fromAsync(batches)).flat().map(({ clientId }) => clientId).sort()
}

await forEachStore(t, async (t, build) => {
  const kit = await build(t)
  const { clients, store } = kit.app.identity
  const records = store.collection<ClientRecord>('clients')

  await t.test('a client without an owner belongs to nobody', async (t) => {
    await checkProperty(t, 12, fc.asyncProperty(fc.array(owners, { minLength: 1, maxLength: 6 }), callers, fc.boolean(), async (held, user_id, isAdmin) => {
      for await (const batch of records.stream()) for (const { id } of batch) await records.delete(id)
      const actor = { user_id, isAdmin } as Actor
      const made = new Map<string, string | undefined>()
      for (const userId of held) {
        const record = createClientRecord(kit.clock.now(), {
          redirectUris: [], scopes: [], name: 'n', secret: 'sealed', revision: 0, ...(userId !== undefined && { userId })
        })
        await records.insert(record)
        made.set(record.id, userId)
      }
      const seen = [...made].filter(([, owner]) => isAdmin || owns(user_id, owner)).map(([id]) => id).sort()
      deepStrictEqual(await readAll(clients.list({ fields: 'clientId', limit: 0 } as object, { ...actor, holds: () => false })), seen)
      deepStrictEqual(await readAll((await clients.page({ fields: 'clientId' }, actor)).batches as AsyncIterable<Client[]>), seen)
      deepStrictEqual(await clients.count(undefined, actor), seen.length)
      const lacks = { ...actor, holds: () => false }
      for (const [id, owner] of made) {
        const expected = isAdmin || owns(user_id, owner) ? 'done' : 'ErrNotFound'
        deepStrictEqual([await outcome(clients.require(id, lacks)), await outcome(clients.patch(id, { data: { name: 'm' } }, actor))], [expected, expected], `${owner} ${user_id}`)
        deepStrictEqual((await records.get(id))?.userId, owner, 'nobody became its owner')
      }
      // What is done to all clients of a user, named by whatever a caller may send.
      for (const user of ['', 'undefined', 'null', 'nobody']) {
        const own = [...made].filter(([, owner]) => owns(user, owner)).length
        deepStrictEqual(await clients.countDependent(user), own)
        if (user === '' || user === 'nobody') {
          await clients.replaceSecrets(user, actor)
          deepStrictEqual(await clients.removeOwned(user, { user_id: 'root', isAdmin: true }), own)
        }
      }
      deepStrictEqual((await Promise.all([...made].map(async ([id]) => (await records.get(id))?.epoch))).filter((epoch) => epoch !== 0), [], 'no secret was replaced')
      for (const [id, owner] of made) deepStrictEqual(await outcome(clients.remove(id, actor)), isAdmin || owns(user_id, owner) ? 'done' : 'ErrNotFound')
      deepStrictEqual(await records.count(), made.size - seen.length)
    }))
  })
})
