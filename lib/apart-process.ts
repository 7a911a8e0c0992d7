import type { Answer, Task } from './apart.ts'

// Runs one function of a module for another process, which alone ends it: the signals of a terminal go to both.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

async function run ({ module, name, args }: Task): Promise<Answer> {
  try {
    const functions = await import(module) as Record<string, (...args: unknown[]) => unknown>
    return { value: functions[name]!(...args) }
  } catch (error) {
    const { name, message, errcode, code } = error as Error & { errcode?: number, code?: string }
    return { error: { name, message, errcode, code } }
  }
}

// Until the other process disconnects, this one keeps what the function has opened.
process.once('message', (task) => { void run(task as Task).then((answer) => process.send!(answer)) })
