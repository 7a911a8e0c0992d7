import type { Authorizations, SignInSessionRecord } from '../browsers/record.ts'
import { createBrowsers } from '../browsers/browsers.ts'
import type { Store } from '../store/port.ts'
import type { Payload } from './model-adapter.ts'

/** Passes over the sessions of a user whose sessions change at the same time. */
const PASSES = 5

/** What oidc-provider stores of each client in a session: the grant, and what the client asked for. */
type Stored = { [client_id: string]: { grantId?: string } }

const readStored = ({ authorizations }: Payload): Stored => (authorizations ?? {}) as Stored

/** The clients in the payloads of sign-in sessions, and the resources in those of grants. */
export function createAuthorizations (store: Store): Authorizations {
  const sessions = store.collection<SignInSessionRecord>('sign_in_sessions')
  const browsers = createBrowsers(store)

  async function forget (user_id: string, client_id: string, passes: number): Promise<boolean> {
    let [removed, moved] = [false, false]
    for await (const batch of browsers.readOf(user_id)) {
      for (const { id, payload } of batch) {
        const { [client_id]: previous, ...authorizations } = readStored(payload)
        if (previous === undefined) continue
        const updated = await sessions.update(id, { set: { payload: { ...payload, authorizations } as Payload } })
        removed = true
        // A request in that browser has given the session another id, under which it still has the consent.
        moved ||= updated === null
      }
    }
    if (moved && passes > 1) await forget(user_id, client_id, passes - 1)
    return removed
  }

  return {
    list: ({ payload }) => Object.entries(readStored(payload)).flatMap(([id, { grantId }]) => grantId === undefined ? [] : [[id, grantId]]),
    listResources: ({ payload }) => Object.keys((payload?.resources ?? {}) as object),
    forget: async (user_id, client_id) => await forget(user_id, client_id, PASSES)
  }
}
