import t from 'tap'
import { createClients } from '../../../lib/clients/clients.ts'
import { IdentityError } from '../../../lib/errors.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { type Around, wrapStore } from '../../helpers/wrap-store.ts'
import { createBase } from '../../helpers/base.ts'

const NOW = Date.UTC(2026, 10, 23)
const OWNER = { user_id: 'ann', isAdmin: false }
const EXPIRES = '2027-01-01T00:00:00.000Z'

/** A client, and the ids of the secrets whose end is noted. `fail` decides what becomes of each write of the client. */
async function open (fail: { write?: (run: () => unknown) => unknown }) {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS })
  t.teardown(() => inner.close())
  const around: Around = ({ collection, method }, run) => collection === 'clients' && method === 'update' && fail.write !== undefined ? fail.write(run) : run()
  const store = wrapStore(inner, around)
  const noted = new Set<string>()
  const ends = {
    add: async (_client_id: string, { id }: { id: string }) => { noted.add(id) },
    forget: async (ids: readonly string[]) => { for (const id of ids) noted.delete(id) }
  }
  const uses = { read: async () => ({}), forget: async () => {} }
  const tokens = { deleteOfClient: () => {} }
  const clients = createClients({
    ...createBase({ store, now: () => NOW }), tokens, checkQuota: async () => {}, uses, ends, checkUrl: (url) => url
  })
  const { clientId } = await clients.create({ data: { redirectUris: [], scopes: [], name: 'app' }, credentials: true }, OWNER)
  const add = async () => await clients.addSecret(clientId, { data: { name: 'ends', expiresAt: EXPIRES } }, OWNER)
  const listIds = async () => (await clients.listSecrets(clientId, OWNER)).secrets.map(({ id }) => id).filter((id) => id !== 'first')
  return { noted, add, listIds }
}

const unknown = () => new IdentityError('ErrDb', 'the outcome is not known')

t.test('a secret whose write has an unknown outcome keeps its notice', async (t) => {
  const fail: { write?: (run: () => unknown) => unknown } = {}
  const { noted, add, listIds } = await open(fail)
  fail.write = async (run) => {
    await run()
    throw unknown()
  }
  await t.rejects(add(), { code: 'ErrDb' })
  const ids = await listIds()
  t.equal(ids.length, 1, 'the write took effect')
  t.strictSame([...noted], ids)
})

t.test('a secret whose write was never made may leave a notice, which tells nobody', async (t) => {
  const fail: { write?: (run: () => unknown) => unknown } = {}
  const { noted, add, listIds } = await open(fail)
  fail.write = async () => { throw unknown() }
  await t.rejects(add(), { code: 'ErrDb' })
  t.strictSame(await listIds(), [])
  t.equal(noted.size, 1)
})

t.test('a secret that is refused leaves no notice', async (t) => {
  const { noted, add, listIds } = await open({})
  for (let count = 0; count < 5; count++) await add()
  await t.rejects(add(), { code: 'ErrLimit' })
  t.strictSame([...noted].sort(), (await listIds()).sort())
})

t.test('a secret that is refused after its notice was stored leaves none: somebody else has added one meanwhile', async (t) => {
  const fail: { write?: (run: () => unknown) => unknown } = {}
  const { noted, add, listIds } = await open(fail)
  for (let count = 0; count < 4; count++) await add()
  fail.write = async (run) => {
    delete fail.write
    await add()
    return await run()
  }
  await t.rejects(add(), { code: 'ErrLimit' })
  t.strictSame([...noted].sort(), (await listIds()).sort())
})
