import type { Clock } from './clock.ts'
import type { SecretBox } from './crypto/secrets.ts'
import type { Recorder } from './events/recorder.ts'
import type { RoleNames } from './roles.ts'
import type { Store } from './store/port.ts'

/** What no caller waits for: deliveries, publication, the removal of dead records and of expired ones (`store`), and what follows a change. */
export type BackgroundWork = 'documents' | 'events' | 'logos' | 'logouts' | 'mail' | 'removals' | 'resources' | 'store' | 'upstreams' | 'users' | 'webhooks'

/** What every room after the events is opened with. */
export interface Base {
  store: Store
  now: Clock
  box: SecretBox
  recorder: Recorder
  roles: RoleNames
  /** Takes the failures of a piece of work that no caller waits for. */
  report: (work: BackgroundWork) => (error: unknown) => void
}
