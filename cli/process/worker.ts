import cluster from 'node:cluster'
import type { Config } from '../../config.ts'
import { type Channel, isOf } from './counter-channel.ts'

/** Makes a process one of our workers. Its name is not one of the configuration's, which nobody else sets. */
const ROLE = 'FASTIFY_IDENTITY_WORKER'
/** Of the worker that tells the first call. */
const WELCOMES = 'welcomes'

/** What a worker says when the first call is told. */
const WELCOMED = { identity: 'welcomed' }

/** The environment of a worker, beside that of the process which starts it. */
export function workerEnv (workers: number, { welcomes }: { welcomes: boolean }): Record<string, string> {
  return { [ROLE]: welcomes ? WELCOMES : 'serves', IDENTITY_WORKERS: String(workers) }
}

export function isWelcomed (message: unknown): boolean {
  return isOf(message, WELCOMED.identity)
}

/** This process was started by our primary, and not by another program that has its own way with node:cluster. */
export function isWorker (): boolean {
  return cluster.isWorker && process.env[ROLE] !== undefined
}

/** Serves as one of several. */
export async function runWorker (config: Config): Promise<void> {
  const { runService } = await import('./service.ts')
  const welcomed = () => { process.send?.(WELCOMED) }
  await runService(config, { channel: process as Channel, ...(process.env[ROLE] === WELCOMES && { welcomed }) })
}
