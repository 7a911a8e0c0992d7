import t, { type Test } from 'tap'
import { deriveKey } from '../../../lib/crypto/derive-key.ts'
import { createSecretBox, generateSecretKey } from '../../../lib/crypto/secrets.ts'
import { createImports } from '../../../lib/import/index.ts'
import { DEFAULT_ROLE_NAMES as roles } from '../../../lib/roles.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { createPasswords } from '../../../lib/users/passwords.ts'
import { createStoredUsers } from '../../../lib/users/stored-users.ts'
import { createTestRecorder } from '../../helpers/events.ts'
import { importLines } from '../../helpers/import.ts'
import '../../helpers/plain-threads.ts'

const LINES = Array.from({ length: 250 }, (_, number) => ({ account: `person${number}` }))

async function open (t: Test, untilQuiet: () => Promise<void>) {
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS })
  t.teardown(() => store.close())
  const now = Date.now
  const onError = (error: unknown) => { throw error }
  const recorder = createTestRecorder(store, now)
  const stored = createStoredUsers({ store, now, role: roles.admin, recorder, tokens: { deleteOfUser: () => {} }, onRemove: async () => {}, onError })
  const box = createSecretBox(generateSecretKey())
  const imports = createImports({
    store, now, box, seedKey: deriveKey(box.key, 'imported seeds'), stored, roles, cost: 4, canAddFactors: true, decoys: { register: async (form) => form }, recorder, untilQuiet, invite: async () => false, hasWayIn: async () => false, onError
  })
  return { imports, count: async () => await store.collection('users').count() }
}

t.test('each hundred lines wait until nobody waits for the hash of a password', async (t) => {
  const seen: number[] = []
  const { imports, count } = await open(t, async () => { seen.push(await count()) })
  t.equal((await importLines({ imports }, LINES)).report.created, 250)
  t.strictSame(seen, [0, 100, 200])
})

t.test('an import beside sign-ins without a pause goes on nevertheless', async (t) => {
  const { imports } = await open(t, async () => await new Promise(() => {}))
  t.equal((await importLines({ imports }, LINES)).report.created, 250)
})

t.test('passwords are quiet when no hash is made or waits', async (t) => {
  const passwords = createPasswords({ cost: 4 })
  t.teardown(() => passwords.close())
  await passwords.idle()
  const done: string[] = []
  const hashing = Promise.all(['one', 'two', 'three'].map(async (text) => {
    await passwords.hash(text)
    done.push(text)
  }))
  await passwords.idle()
  // The caller of the last one is about to go on.
  t.ok(done.length >= 2, `${done.length} of 3`)
  t.equal(passwords.countWaiting(), 0)
  await hashing
})
