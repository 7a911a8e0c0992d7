import type { ConsoleSection } from '../../lib/pages/console/index.ts'
import type { Operation } from '../../plugins/access-table.ts'

/** The sections of the console, each with the operations of which one shows it. */
export const SECTIONS: readonly { section: ConsoleSection, needs: readonly Operation[] }[] = [
  { section: 'overview', needs: [] },
  { section: 'people', needs: ['listUsers', 'inviteUser', 'createUser', 'getUser'] },
  { section: 'events', needs: ['listEvents'] },
  { section: 'jobs', needs: ['listJobs'] }
]
