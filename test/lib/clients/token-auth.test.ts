import t, { type Test } from 'tap'
import { RESERVED_SCOPES } from '../../../lib/api-scopes.ts'
import type { Happening } from '../../../lib/events/types.ts'
import { warnOfReserved } from '../../../lib/clients/reserved.ts'
import { type ClientRecord, createClientRecord } from '../../../lib/records/client.ts'
import type { Actor } from '../../../lib/roles.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import type { Document } from '../../../lib/store/port.ts'
import { openStore } from '../../../lib/store/index.ts'
import { BEGIN, openRules } from '../../helpers/services.ts'

// How a client authenticates, and who may change it.

const ADMIN: Actor = { user_id: 'admin', isAdmin: true }
const ANN: Actor = { user_id: 'ann', isAdmin: false }
const DAY = 24 * 60 * 60 * 1000
type Data = NonNullable<Parameters<Awaited<ReturnType<typeof openRules>>['clients']['patch']>[1]['data']>

const named = (id: string) => ({ id, name: id, hash: 'h', last4: 'wxyz', created_at: '2026-01-01T00:00:00.000Z' })
const at = (ahead: number) => new Date(Date.parse(BEGIN) + ahead).toISOString()

async function open (t: Test) {
  const events: Happening[] = []
  const { clients, records, store } = await openRules(t, { record: (happening) => { events.push(happening) } })
  return {
    clients,
    events,
    uses: store.collection<Document & Record<string, string>>('client_uses'),
    read: async (id: string) => (await records.clients.get(id))!,
    mark: async (id: string, set: Partial<ClientRecord>, unset: string[] = []) => { await records.clients.update(id, { set, unset }) },
    register: async (data: Partial<Data> = {}, credentials = true, actor = ANN) =>
      (await clients.create({ data: { redirectUris: ['https://a.example/'], scopes: [], name: 'n', ...data } as never, credentials }, actor)).clientId,
    set: async (id: string, data: Data, actor = ANN) => await clients.patch(id, { data }, actor)
  }
}

const refused = (message: string, code = 'ErrParam') => ({ code, message })

t.test('a client is confidential by its way to authenticate, however many secrets are left', async (t) => {
  const { register, clients, read, mark, set } = await open(t)
  const id = await register()
  t.notOk('tokenAuth' in await read(id), 'absent: by its secret')
  t.match(await clients.require(id, ANN), { clientSecret: /^\w{16}$/, tokenAuth: undefined, confidential: undefined })
  await mark(id, { tokenAuth: 'secret' }, ['secret'])
  t.match(await clients.require(id, ANN), { clientSecret: undefined, tokenAuth: 'secret', confidential: true })
  await set(id, { grants: ['client'] })
  await t.rejects(clients.patch(id, { regen_secret: true }, ANN), refused('regen_secret: the client has no readable secret'))
  const bare = await register({ tokenAuth: 'secret', grants: ['client'] }, false)
  t.match(await read(bare), { tokenAuth: 'secret', secret: undefined, grants: ['client'] }, 'registered without a readable secret')
  t.notOk('tokenAuth' in await read(await register({ tokenAuth: 'secret' })))
  t.match(await read(await register({ tokenAuth: 'none' }, false)), { tokenAuth: 'none', secret: undefined })
  await t.rejects(register({ tokenAuth: 'none' }), refused('credentials: must not be true with tokenAuth none'))
  await t.rejects(register({ tokenAuth: 'none', grants: ['client'] }, false), { code: 'ErrParam', message: /^grants: must not have client/ })
  const noKeys = refused('tokenAuth: must not be private_key_jwt, because the client has no keys')
  await t.rejects(register({ tokenAuth: 'private_key_jwt' }), noKeys)
  await t.rejects(set(id, { tokenAuth: 'private_key_jwt' }), noKeys)
})

t.test('the start warns of clients with a scope of a name that is reserved now', async (t) => {
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: () => 0 })
  t.teardown(() => store.close())
  const warnings: string[] = []
  const warn = async () => { await warnOfReserved(store, (message) => { warnings.push(message) }) }
  await warn()
  t.strictSame(warnings, [])
  for (const [id, scopes, reserved] of [['c1', ['read', 'groups'], true], ['c2', ['org'], true], ['c3', ['group'], false]] as const) {
    await store.collection<ClientRecord>('clients').insert(createClientRecord(0, { id, name: id, userId: 'u1', redirectUris: [], scopes: [...scopes], revision: 0, ...(reserved && { reserved }) }))
  }
  await warn()
  t.strictSame(warnings, ['reserved scopes: some clients (2) have a scope of a name that is reserved now, such as groups of client c1. ' +
    'For them it stays a free scope, and never gets the meaning that a later release gives the name'])
})

t.test('only an administrator makes a client public, and that ends its tokens and removes its secrets', async (t) => {
  const { register, clients, read, mark, set, events } = await open(t)
  const id = await register()
  await mark(id, { secrets: [named('s1')] })
  await t.rejects(set(id, { tokenAuth: 'none' }), refused('tokenAuth: only an admin may make a client public', 'ErrPerm'))
  await mark(id, { roles: { robot: true } })
  await t.rejects(set(id, { tokenAuth: 'none' }, ADMIN), refused('tokenAuth: must not be none for a client with roles'))
  await mark(id, { grants: ['code', 'client'] }, ['roles'])
  await t.rejects(set(id, { tokenAuth: 'none' }, ADMIN), { code: 'ErrParam', message: /^grants: must not have client/ })
  await mark(id, { pkce: 'optional' }, ['grants'])
  await t.rejects(set(id, { tokenAuth: 'none' }, ADMIN), { code: 'ErrParam', message: /^pkce: must be required/ })
  const before = await read(id)
  await t.rejects(clients.patch(id, { data: { tokenAuth: 'none', pkce: 'required' }, regen_secret: true }, ADMIN), refused('regen_secret: a public client has no secret'))
  t.strictSame(await read(id), before)
  await set(id, { tokenAuth: 'none', pkce: 'required' }, ADMIN)
  const { secret, secrets, tokenAuth, epoch } = await read(id)
  t.strictSame([secret, secrets, tokenAuth, epoch], [undefined, undefined, 'none', before.epoch + 1])
  t.match(events.at(-1), { type: 'client.updated', changed: ['tokenAuth', 'pkce'] })
  t.match(await clients.require(id, ANN), { clientSecret: undefined, confidential: undefined })
  await set(id, { tokenAuth: 'none' })
  t.equal((await read(id)).epoch, epoch, 'it is public already')
  await set(id, { tokenAuth: 'secret' })
  t.match(await clients.require(id, ANN), { confidential: true, tokenAuth: 'secret' }, 'its owner makes it confidential again')
})

t.test('the former way passes for a time that is bounded', async (t) => {
  const { register, clients, read, mark, set } = await open(t)
  const id = await register()
  await mark(id, { tokenAuth: 'private_key_jwt' })
  for (const [until, message] of [
    [at(0), 'former.until: must be in the future'], [at(30 * DAY + 1), 'former.until: must be at most 30 days ahead'], ['soon', 'former.until: must be an RFC 3339 date-time with an offset or Z']
  ] as const) await t.rejects(set(id, { tokenAuth: 'secret', former: { until } }), refused(message))
  await t.rejects(set(id, { former: { until: at(DAY) } }), refused('former: must come with tokenAuth'))
  await t.rejects(set(id, { tokenAuth: 'private_key_jwt', former: { until: at(DAY) } }), refused('former: must come with a change of tokenAuth'))
  await t.rejects(set(id, { tokenAuth: 'none', former: { until: at(DAY) } }, ADMIN), refused('former: must be absent for tokenAuth none'))
  await set(id, { tokenAuth: 'secret', former: { until: at(30 * DAY) } })
  t.match(await read(id), { tokenAuth: 'secret', former_auth: { method: 'private_key_jwt', until: at(30 * DAY) }, epoch: 0 })
  t.match(await clients.require(id, ANN), { former: { tokenAuth: 'private_key_jwt', until: at(30 * DAY) } })
  await set(id, { tokenAuth: 'secret' })
  t.notOk('former_auth' in await read(id), 'the window is closed')
  const open_ = await register({}, false)
  await t.rejects(set(open_, { tokenAuth: 'secret', former: { until: at(DAY) } }), refused('former: must be absent, because the previous tokenAuth is none'))
})

t.test('who takes a client over or vouches for it knows all its secrets', async (t) => {
  const { register, clients, read, mark, set, uses } = await open(t)
  for (const [what, act] of Object.entries({
    take_over: async (id: string) => await clients.patch(id, { take_over: true }, ADMIN),
    vouching: async (id: string) => await set(id, { first_party: true }, ADMIN),
    regen_secrets: async (id: string) => await clients.replaceSecrets((await read(id)).userId!, ADMIN)
  })) {
    for (const readable of [true, false]) {
      const id = await register()
      await mark(id, { secrets: [named('s1')], tokenAuth: 'secret' }, readable ? [] : ['secret'])
      const before = await read(id)
      await uses.put({ id, 'use:s1': BEGIN })
      await act(id)
      const after = await read(id)
      t.notOk('secrets' in after, `${what}: named secrets of the former holder are gone`)
      t.strictSame(await uses.get(id), { id }, `${what}: nor is their last use kept`)
      t.equal(after.epoch, before.epoch + 1)
      t.equal(after.secret !== undefined, readable)
      t.notSame(after.secret, readable ? before.secret : 'x')
      t.match(await clients.require(id, ADMIN), readable ? { clientSecret: /^\w{16}$/ } : { confidential: true })
    }
  }
  const id = await register()
  await mark(id, { secrets: [named('s1')] })
  await clients.patch(id, { regen_secret: true }, ANN)
  t.match(await read(id), { secrets: [{ id: 's1' }], epoch: 1 }, 'a new readable secret leaves the others')
})

t.test('reserved scopes are not given any more, and stay free scopes where they are', async (t) => {
  const { register, read, mark, set } = await open(t)
  const id = await register()
  for (const scope of RESERVED_SCOPES) {
    for (const actor of [ANN, ADMIN]) {
      await t.rejects(set(id, { scopes: [scope] }, actor), refused('scopes[0]: is reserved'))
      await t.rejects(register({ scopes: [scope] }, true, actor), refused('scopes[0]: is reserved'))
    }
  }
  await mark(id, { scopes: ['groups', 'read'], reserved: true })
  await set(id, { scopes: ['groups', 'write'] })
  t.match(await read(id), { scopes: ['groups', 'write'], reserved: true }, 'kept')
  await set(id, { scopes: ['write'] })
  t.notOk('reserved' in await read(id))
  await t.rejects(set(id, { scopes: ['groups'] }), refused('scopes[0]: is reserved'), 'once given up')
})
