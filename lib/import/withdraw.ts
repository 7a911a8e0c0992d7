import { IdentityError, paramError } from '../errors.ts'
import type { EventRecord } from '../events/types.ts'
import { readFirst } from '../lists/first.ts'
import type { UserRecord } from '../records/user.ts'
import { type Actor, holdsRole } from '../roles.ts'
import type { Store } from '../store/port.ts'
import { scan } from '../store/scan.ts'
import type { ImportServices } from './parts.ts'
import { untilFree } from './until-free.ts'

/** What became of a person of the run. Somebody who has signed in, or whom somebody has changed, is kept. */
export interface Withdrawn {
  user_id: string
  result: 'removed' | 'kept'
}

const SIGN_IN = 'sign_in.succeeded'

/** The records that a sign-in leaves behind, or that an operator has made for the person. */
const TRACES = ['sign_in_sessions', 'grants', 'access_tokens', 'refresh_tokens', 'authorization_codes', 'device_codes']

/** Whether somebody has used the account: an event says so, or a record of a sign-in, or a change that no import has made. */
async function isUsed (store: Store, { id, revision, imported_revision }: UserRecord): Promise<boolean> {
  if (revision !== imported_revision) return true
  const traces = TRACES.map(async (name) => await readFirst(store.collection(name), { filter: { equal: { user_id: id } }, urgent: true }))
  const event = readFirst(store.collection('events'), {
    filter: { equal: { user: id, type: SIGN_IN } }, sort: [{ key: 'key', direction: 'asc' }], urgent: true
  })
  const client = readFirst(store.collection('clients'), { filter: { equal: { userId: id } }, sort: [{ key: 'name', direction: 'asc' }], urgent: true })
  return (await Promise.all([...traces, event, client])).some((found) => found !== undefined)
}

/** Whether a run has ended, with or without people: an event says so. */
async function isRecorded (store: Store, run: string): Promise<boolean> {
  for await (const batch of scan(store.collection<EventRecord>('events'), { equal: { type: 'users.imported' } }, { key: 'key', urgent: true })) {
    if (batch.some(({ content }) => content?.target.id === run)) return true
  }
  return false
}

/** Removes the people of a run who have never signed in. Somebody who signs in meanwhile loses that session with the account. */
export async function * withdraw (
  { store, stored, roles, timers }: Pick<ImportServices, 'store' | 'stored' | 'roles' | 'timers'>, run: string, { confirm }: Pick<Actor, 'confirm'> = {}
): AsyncGenerator<Withdrawn[]> {
  const users = store.collection<UserRecord>('users')

  async function removeOne (user: UserRecord): Promise<Withdrawn> {
    const { id: user_id } = user
    if (await isUsed(store, user)) return { user_id, result: 'kept' }
    try {
      await stored.removeUser(user_id, {
        // Of the record that the deletion is conditional on.
        async confirm () {
          const record = await users.get(user_id)
          if (record !== null && (record.imported_run !== run || record.revision !== record.imported_revision)) throw new Used()
        }
      })
      return { user_id, result: 'removed' }
    } catch (error) {
      if (error instanceof Used || (error instanceof IdentityError && error.code === 'ErrPerm')) return { user_id, result: 'kept' }
      throw error
    }
  }

  const remove = async (user: UserRecord) => await untilFree(async () => await removeOne(user), { timers })

  let isKnown = false
  for await (const batch of scan(users, { equal: { imported_run: run } }, { urgent: true })) {
    isKnown = true
    await confirm?.()
    const withdrawn: Withdrawn[] = []
    // One record decides about all administrators.
    const isAlone = ({ roles: held }: UserRecord) => holdsRole(held, roles.admin)
    for (const user of batch.filter(isAlone)) withdrawn.push(await remove(user))
    yield [...withdrawn, ...await Promise.all(batch.filter((user) => !isAlone(user)).map(remove))]
  }
  if (!isKnown && !await isRecorded(store, run)) throw paramError('withdraw', 'is the name of no run')
}

class Used extends Error {}
