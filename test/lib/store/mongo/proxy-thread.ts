import { once } from 'node:events'
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'
import { type Mode, startProxy } from './proxy.ts'

type Command = { set: Mode } | { cut: { reset: boolean } }

export interface ProxyThread {
  port: number
  /** Each resolves when it is done. */
  set: (mode: Mode) => Promise<void>
  cut: (options: { reset: boolean }) => Promise<void>
  stop: () => Promise<unknown>
}

/**
 * A proxy with its own event loop. So the ends of many connections reach the client in one turn of its loop, as in production.
 * From a shared loop they would come one by one.
 */
export async function startProxyThread (target: { host: string, port: number }): Promise<ProxyThread> {
  const worker = new Worker(new URL(import.meta.url), { workerData: target })
  const [port] = await once(worker, 'message') as [number]
  const send = async (command: Command) => {
    worker.postMessage(command)
    await once(worker, 'message')
  }
  return { port, set: (set) => send({ set }), cut: (cut) => send({ cut }), stop: () => worker.terminate() }
}

if (!isMainThread) {
  const proxy = await startProxy({ teardown: () => {} }, workerData as { host: string, port: number })
  parentPort!.on('message', (command: Command) => {
    if ('set' in command) proxy.set(command.set)
    else proxy.cut(command.cut)
    parentPort!.postMessage('done')
  })
  parentPort!.postMessage(proxy.port)
}
