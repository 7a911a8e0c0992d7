import { openServices } from '../../lib/identity.ts'
import { DEFAULT_ROLE_NAMES } from '../../lib/roles.ts'

/** The services of a process that imports, without an app. */
export const openImportServices = async (database: string): ReturnType<typeof openServices> => await openServices({
  database,
  secretKey: Buffer.alloc(32, 7).toString('base64'),
  dataDir: '.',
  production: false,
  createDatabase: true,
  storeTimeout: 60_000,
  bcryptCost: 4,
  hashQueue: 10,
  passwordMin: 1,
  roles: DEFAULT_ROLE_NAMES,
  managerRoles: undefined,
  clientsPerUser: 10,
  auditDays: 1,
  addresses: 'full'
} as unknown as Parameters<typeof openServices>[0])
