import { type ServiceOptions, type Services, openServices } from '../../lib/identity.ts'
import { DEFAULT_ROLE_NAMES } from '../../lib/roles.ts'

/** Opens the services without HTTP, for a process of its own. */
export async function openPlainServices (options: Partial<ServiceOptions>): Promise<Services> {
  return await openServices({
    database: 'sqlite::memory:',
    secretKey: Buffer.alloc(32, 7).toString('base64'),
    storeTimeout: 10_000,
    production: false,
    bcryptCost: 4,
    hashQueue: 100,
    passwordMin: 1,
    roles: DEFAULT_ROLE_NAMES,
    clientsPerUser: false,
    auditDays: 400,
    addresses: 'full',
    dataDir: undefined,
    createDatabase: true,
    managerRoles: undefined,
    refreshTtl: 3_600,
    ...options
  })
}
