import cluster from 'node:cluster'
import type { Variables } from '../../lib/variables.ts'

/** `first`: the worker that starts alone, and prints the welcome text. */
export type WorkerRole = 'first' | 'other'

const VARIABLE = 'FASTIFY_IDENTITY_WORKER'

const GIVEN = 'FASTIFY_IDENTITY_GIVEN'

/** The variables that the primary process replaces for its workers. */
const REPLACED = ['IDENTITY_WORKERS', 'IDENTITY_CREATE_DATABASE', 'IDENTITY_METRICS']

/** What the operator has given: the environment, and the variables that are set by flags. */
export interface Given {
  env: Variables
  flagged: Record<string, string>
}

/** The environment that makes a process one of our workers. It keeps what the primary process was given, as the settings are shown. */
export function toEnvironment (role: WorkerRole, { env, flagged }: Given): Record<string, string> {
  return { [VARIABLE]: role, [GIVEN]: JSON.stringify({ env: Object.fromEntries(REPLACED.map((name) => [name, env[name]])), flagged }) }
}

/** What the operator has given to the primary process of this worker. */
export function readGiven (env: Variables): Given {
  const { [GIVEN]: text = '{}', ...own } = env
  const { env: replaced, flagged = {} } = JSON.parse(text) as Partial<Given>
  return { env: { ...own, ...Object.fromEntries(REPLACED.map((name) => [name, replaced?.[name]])) }, flagged }
}

/** The role of this process; undefined when our primary did not start it. */
export function getWorkerRole (): WorkerRole | undefined {
  return cluster.isWorker ? process.env[VARIABLE] as WorkerRole | undefined : undefined
}
