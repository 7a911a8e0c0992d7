import cluster from 'node:cluster'

/** `first`: the worker that starts alone, and prints the welcome text. */
export type WorkerRole = 'first' | 'other'

const VARIABLE = 'FASTIFY_IDENTITY_WORKER'

/** The environment that makes a process one of our workers. */
export const toEnvironment = (role: WorkerRole) => ({ [VARIABLE]: role })

/** The role of this process; undefined when our primary did not start it. */
export function getWorkerRole (): WorkerRole | undefined {
  return cluster.isWorker ? process.env[VARIABLE] as WorkerRole | undefined : undefined
}
