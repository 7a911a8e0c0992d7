import type { ConsoleSection } from '../../lib/pages/console/index.ts'
import type { Operation } from '../../plugins/access-table.ts'

/**
 * The row of the access table that shows the section of clients: everybody may list and read their own, and this is the row about those of
 * others.
 */
export const OTHERS_CLIENTS: Operation = 'deleteClientsOfUser'

/** The sections of the console, each with the operations of which one shows it. */
export const SECTIONS: readonly { section: ConsoleSection, needs: readonly Operation[] }[] = [
  { section: 'overview', needs: [] },
  { section: 'people', needs: ['listUsers', 'inviteUser', 'createUser', 'getUser'] },
  { section: 'clients', needs: [OTHERS_CLIENTS] },
  { section: 'events', needs: ['listEvents'] },
  { section: 'jobs', needs: ['listJobs'] },
  { section: 'settings', needs: ['listSettings'] }
]
