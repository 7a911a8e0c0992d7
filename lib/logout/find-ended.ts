import { createBrowsers } from '../browsers/browsers.ts'
import type { Authorizations } from '../browsers/record.ts'
import { scan } from '../store/scan.ts'
import type { GrantRecord } from '../records/token.ts'
import type { Store } from '../store/port.ts'
import { MOST_SESSIONS } from './record.ts'

/** The most sign-in sessions, and the most grants, read to find out whether a user is signed in to a client. */
const MOST_READ = 1_000

/** A client, and the user's sessions that ended there. */
interface Ended {
  user_id: string
  client_id: string
  /** The epoch of the sessions. */
  user_epoch: number
  uids: Set<string>
  more: boolean
}

/** Finds the clients that a user signed in to. */
export function createReader (store: Store, authorizations: Pick<Authorizations, 'list'>) {
  const grants = store.collection<GrantRecord>('grants')
  const browsers = createBrowsers(store)

  return {
    /** The clients of a sign-in session. Null when it has ended already. */
    async ofSession (uid: string): Promise<{ user_id: string, clients: Map<string, string> } | null> {
      let user_id: string | undefined
      const clients = new Map<string, string>()
      for await (const batch of browsers.readAt(uid)) {
        for (const record of batch) {
          user_id ??= record.user_id
          for (const [client_id, grant_id] of authorizations.list(record)) clients.set(client_id, grant_id)
        }
      }
      if (user_id === undefined) return null
      for await (const batch of scan(grants, { equal: { session_uid: uid } }, { urgent: true })) {
        for (const { id, client_id } of batch) if (!clients.has(client_id)) clients.set(client_id, id)
      }
      return { user_id, clients }
    },

    /**
     * The clients that a user signed in to before an epoch, with one entry for each client and epoch of the session.
     * @param epoch absent: all epochs
     */
    async ofUser (user_id: string, epoch = Infinity): Promise<Ended[]> {
      const found = new Map<string, Ended>()
      function note (client_id: string, uid: string, user_epoch: number): void {
        if (user_epoch >= epoch) return
        const key = `${user_epoch} ${client_id}`
        const ended = found.get(key) ?? { user_id, client_id, user_epoch, uids: new Set(), more: false }
        found.set(key, ended)
        if (ended.uids.size < MOST_SESSIONS) ended.uids.add(uid)
        else if (!ended.uids.has(uid)) ended.more = true
      }
      for await (const batch of scan(grants, { equal: { user_id } }, { urgent: true })) {
        // A grant without a session was minted, without a sign-in.
        for (const { client_id, session_uid, user_epoch } of batch) if (session_uid !== undefined) note(client_id, session_uid, user_epoch)
      }
      for await (const batch of browsers.readOf(user_id)) {
        for (const record of batch) for (const [client_id] of authorizations.list(record)) note(client_id, record.uid, record.user_epoch ?? 0)
      }
      return [...found.values()]
    },

    /** The user's current sessions in which they signed in to this client. */
    async findCurrent (user_id: string, client_id: string, epoch: number): Promise<Set<string>> {
      const current = new Set<string>()
      let read = 0
      for await (const batch of browsers.readOf(user_id)) {
        for (const record of batch) {
          if ((record.user_epoch ?? 0) >= epoch && authorizations.list(record).some(([id]) => id === client_id)) current.add(record.uid)
        }
        if ((read += batch.length) >= MOST_READ) break
      }
      read = 0
      for await (const batch of scan(grants, { equal: { user_id, client_id } }, { urgent: true })) {
        for (const { session_uid, user_epoch } of batch) if (user_epoch >= epoch && session_uid !== undefined) current.add(session_uid)
        if ((read += batch.length) >= MOST_READ) break
      }
      return current
    }
  }
}
