import { fork } from 'node:child_process'
import { extname } from 'node:path'

/** A value that is passed between the processes as JSON. */
type Plain = string | number | boolean | null | undefined | Plain[] | { [key: string]: Plain }

/** A synchronous function of a module, and its arguments. */
export interface Task {
  module: string
  name: string
  args: Plain[]
}

/** What the process answers with. */
export type Answer = { value: unknown } | { error: { name: string, message: string, errcode?: number, code?: string } }

interface ApartOptions<T> {
  /** Ends the process, also in the middle of a call of SQLite, which no thread can be stopped in. */
  signal?: AbortSignal | undefined
  /** Is called with the answer while the process still lives, and whatever the function has opened is open. No signal ends that. */
  use?: ((value: T) => Promise<unknown>) | undefined
}

/** The module of the process. Its extension is that of this module, because tsc rewrites imports and not URLs. */
const PROCESS = new URL(`./apart-process${extname(import.meta.url)}`, import.meta.url)

/**
 * Runs a long synchronous function in a process of its own, so that this one goes on and obeys its signals.
 * @throws Error of the function, with its `errcode`; the reason of the signal
 */
export async function runApart<T> (task: Task, { signal, use = async () => {} }: ApartOptions<T> = {}): Promise<T> {
  signal?.throwIfAborted()
  // Without the flags of this process: --import would load its module there too.
  const child = fork(PROCESS, { execArgv: [] })
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const { promise: answered, resolve, reject } = Promise.withResolvers<Answer>()
  child.once('message', (answer) => resolve(answer as Answer)).on('error', reject).on('exit', (code, by) => {
    reject(new Error(`the process of this step ended with ${code ?? by}`))
    end()
  })
  const stop = () => {
    reject(signal!.reason)
    child.kill('SIGKILL')
  }
  signal?.addEventListener('abort', stop)
  try {
    child.send(task)
    const answer = await answered
    signal?.removeEventListener('abort', stop)
    if ('error' in answer) throw Object.assign(new Error(answer.error.message), answer.error)
    const value = answer.value as T
    await use(value)
    return value
  } finally {
    signal?.removeEventListener('abort', stop)
    if (child.connected) child.disconnect()
    if (child.pid !== undefined) await ended
  }
}
