import t from 'tap'
import { changeRecord } from '../../../lib/change-record.ts'
import type { ClientRecord } from '../../../lib/records/client.ts'
import type { Actor } from '../../../lib/roles.ts'
import { createTestKey } from '../../helpers/assertions.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { type RuleRow, checkRules } from '../../helpers/replaced-record.ts'
import { Scheduler } from '../../helpers/scheduler.ts'
import { openRules } from '../../helpers/services.ts'

const scheduler = new Scheduler()
const { store, clients, records } = await openRules(t, { around: scheduler.around })
// The record decides, and the removal of what has ended does not touch it.
scheduler.isShared = ({ collection, method }) => collection === 'clients' && method !== 'next'

const ADMIN: Actor = { user_id: 'admin', isAdmin: true }
const OWNER: Actor = { user_id: 'ann', isAdmin: false }
const KEYS = { keys: [createTestKey('ES256', 'new').jwk] }

/** A client with a readable secret and four named ones. Five is the most. */
interface Scene { clientId: string, secret: string, tag: string, read: () => Promise<ClientRecord | null> }

async function create (): Promise<Scene> {
  await records.clients.deleteMany({ before: { id: '~' } })
  const { clientId } = await clients.create({ data: { redirectUris: [], scopes: ['read'], name: 'old' }, credentials: true }, OWNER)
  for (const name of ['one', 'two', 'three']) await clients.addSecret(clientId, { data: { name } }, OWNER)
  const { id: secret } = await clients.addSecret(clientId, { data: { name: 'four' } }, OWNER)
  const { tag } = await clients.listSecrets(clientId, OWNER)
  return { clientId, secret, tag, read: async () => await records.clients.get(clientId) }
}

interface Rule { act: (scene: Scene) => Promise<unknown>, isWritten: (record: ClientRecord | null, scene: Scene) => boolean, excludes?: true }

const hasNewSecret = (record: ClientRecord | null): boolean => record?.secrets?.some(({ name }) => name === 'new') === true
const addSecret = async ({ clientId }: Scene, tag?: string) => await clients.addSecret(clientId, { data: { name: 'new' } }, OWNER, tag)
const removeSecret = async ({ clientId, secret }: Scene, tag?: string) => await clients.removeSecret(clientId, secret, OWNER, tag)
const lacksSecret = (record: ClientRecord | null, { secret }: Scene): boolean => record?.secrets?.some(({ id }) => id === secret) !== true

const isGone = (record: ClientRecord | null): boolean => record === null

/** What an owner does with a client. */
const OF_OWNER: Record<string, Rule> = {
  'the owner renames it': { act: async ({ clientId }) => await clients.patch(clientId, { data: { name: 'new' } }, OWNER), isWritten: (record) => record?.name === 'new' },
  'the owner adds a secret': { act: async (scene) => await addSecret(scene), isWritten: hasNewSecret },
  'the owner removes a secret': { act: async (scene) => await removeSecret(scene), isWritten: lacksSecret },
  'the owner adds a key': { act: async ({ clientId }) => await clients.addKeys(clientId, KEYS, OWNER), isWritten: (record) => record?.keys !== undefined },
  'the owner replaces all keys': { act: async ({ clientId }) => await clients.patch(clientId, { data: { jwks: KEYS } }, OWNER), isWritten: (record) => record?.keys !== undefined },
  'the owner removes it': { act: async ({ clientId }) => await clients.remove(clientId, OWNER), isWritten: isGone, excludes: true }
}

/** Removes all clients of the user. @throws when it was none */
async function removeOwned (actor: Actor): Promise<void> {
  if (await clients.removeOwned(OWNER.user_id, actor) === 0) throw Object.assign(new Error('none'), { code: 'none' })
}

/** What an administrator does, and how it refuses the owner. Fields only, so that what they have done before is there to be seen. */
const TAKEN: Record<string, [change: Partial<ClientRecord>, refusal: string]> = {
  'the operator vouches for it': [{ first_party: true }, 'ErrPerm'],
  'somebody else owns it': [{ userId: 'bob' }, 'ErrNotFound']
}

const gone = () => new Error('the client is gone')
const recorder = createSilentRecorder(store)

async function set ({ clientId }: Scene, fields: Partial<ClientRecord>): Promise<void> {
  await changeRecord({ collection: store.collection<ClientRecord>('clients'), recorder, what: 'the client', notFound: gone }, clientId, () => ({ set: fields }))
}

function toRow ({ act, isWritten, excludes }: Rule, refusal: string, change: (scene: Scene) => Promise<unknown>): RuleRow {
  return {
    refusal,
    ...(excludes && { excludes }),
    async prepare () {
      const scene = await create()
      return { act: async () => await act(scene), change: async () => await change(scene), isWritten: async () => isWritten(await scene.read(), scene) }
    }
  }
}

const rows: Record<string, RuleRow> = {}
for (const [what, rule] of Object.entries(OF_OWNER)) {
  for (const [when, [fields, refusal]] of Object.entries(TAKEN)) rows[`${what}, until ${when}`] = toRow(rule, refusal, async (scene) => await set(scene, fields))
}
await checkRules(t, scheduler, 'clients', rows)

const addAnother = async ({ clientId }: Scene) => await clients.addSecret(clientId, { data: { name: 'another' } }, OWNER)
const removeFirst = async ({ clientId }: Scene) => await clients.removeSecret(clientId, 'first', OWNER)

await checkRules(t, scheduler, 'clients', {
  'the owner removes all of theirs, until the operator vouches for one': toRow({ act: async () => await removeOwned(OWNER), isWritten: isGone, excludes: true }, 'ErrPerm', async (scene) => await set(scene, { first_party: true })),
  'the owner removes all of theirs, until somebody else owns one': toRow({ act: async () => await removeOwned(OWNER), isWritten: isGone, excludes: true }, 'none', async (scene) => await set(scene, { userId: 'bob' })),
  'all are removed with the account of their owner, until somebody else owns one': toRow({ act: async () => await removeOwned(ADMIN), isWritten: isGone, excludes: true }, 'none', async (scene) => await set(scene, { userId: 'bob' })),
  'a secret is added with If-Match, until the secrets change': toRow({ act: async (scene) => await addSecret(scene, scene.tag), isWritten: hasNewSecret }, 'ErrParam', removeFirst),
  'a secret is removed with If-Match, until the secrets change': toRow({ act: async (scene) => await removeSecret(scene, scene.tag), isWritten: lacksSecret }, 'ErrParam', removeFirst),
  'a secret is added, until there are five': toRow({ act: async (scene) => await addSecret(scene), isWritten: hasNewSecret, excludes: true }, 'ErrLimit', addAnother)
})
