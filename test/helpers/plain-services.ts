import { type ServiceOptions, type Services, openServices } from '../../lib/identity.ts'
import { DEFAULT_ROLE_NAMES } from '../../lib/roles.ts'

/** Options of the services, without HTTP. */
export function toPlainOptions (options: Partial<ServiceOptions>): ServiceOptions {
  return {
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
  }
}

/** Opens the services without HTTP, for a process of its own. */
export const openPlainServices = async (options: Partial<ServiceOptions>): Promise<Services> => await openServices(toPlainOptions(options))
