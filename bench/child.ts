import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Calls } from './expose.ts'
import { pin } from './machine.ts'
import type { ServerSpec } from './types.ts'

type Message = { id: number, result?: unknown, error?: string } | { ready: unknown }

/** A pinned child process that answers calls (expose.ts). */
export class Child<C extends Calls, R = unknown> {
  readonly #process: ChildProcess
  readonly #calls = new Map<number, { resolve: (value: never) => void, reject: (error: Error) => void }>()
  readonly #ready = Promise.withResolvers<R>()
  #id = 0

  /** @param file relative to this one */
  constructor (file: string, args: string[], cores: number[], { flags = [], quiet = false, env }: Pick<ServerSpec, 'flags' | 'quiet' | 'env'> = {}) {
    const [command, ...rest] = pin([process.execPath, ...flags, fileURLToPath(new URL(file, import.meta.url)), ...args], cores)
    this.#process = spawn(command!, rest, {
      stdio: ['ignore', quiet ? 'ignore' : 2, 'inherit', 'ipc'],
      env: env === undefined ? { ...process.env, NODE_ENV: 'production' } : { PATH: process.env.PATH, ...env }
    })
    this.#process.on('message', (message: Message) => this.#receive(message))
    this.#process.on('error', (error) => this.#fail(error))
    this.#process.on('exit', (code, signal) => this.#fail(new Error(`${file} exited (${signal ?? code})`)))
    this.#ready.promise.catch(() => {})
  }

  get pid (): number {
    return this.#process.pid!
  }

  /** Resolves to the message that the process sent when it was ready. */
  get ready (): Promise<R> {
    return this.#ready.promise
  }

  call<N extends keyof C & string> (name: N, params: Parameters<C[N]>[0]): ReturnType<C[N]> {
    const id = ++this.#id
    const { promise, resolve, reject } = Promise.withResolvers<never>()
    this.#calls.set(id, { resolve, reject })
    this.#process.send({ id, name, params: params ?? null })
    return promise as ReturnType<C[N]>
  }

  async stop (): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const exit = once(this.#process, 'exit')
    if (this.#process.connected) this.#process.disconnect()
    await exit
  }

  #receive (message: Message): void {
    if ('ready' in message) return this.#ready.resolve(message.ready as R)
    const call = this.#calls.get(message.id)
    this.#calls.delete(message.id)
    if (message.error !== undefined) call?.reject(new Error(message.error))
    else call?.resolve(message.result as never)
  }

  #fail (error: Error): void {
    this.#ready.reject(error)
    for (const { reject } of this.#calls.values()) reject(error)
    this.#calls.clear()
  }
}
