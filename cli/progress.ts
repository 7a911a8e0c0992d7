import type { Surroundings } from './command.ts'

/** Milliseconds between two lines. */
const INTERVAL = 2_000

/** Work on a collection: the documents so far. */
interface Progress {
  step: string
  collection: string
  documents: number
}

/** Reports the progress on stderr. */
export function createReport ({ stderr, json }: Pick<Surroundings, 'stderr' | 'json'>): (progress: Progress) => void {
  let [last, begin, time] = ['', 0, 0]
  return ({ step, collection, documents }) => {
    const now = performance.now()
    const name = `${step} ${collection}`
    if (name !== last) [last, begin, time] = [name, now, now]
    if (json || now - time < INTERVAL) return
    time = now
    stderr.write(`${name}: ${documents} documents, ${Math.round(documents / (now - begin) * 1000)} a second\n`)
  }
}

/** Reports every other second that a step goes on, until it has ended. */
export async function reportWhile<T> ({ stderr, json }: Pick<Surroundings, 'stderr' | 'json'>, step: string, run: () => Promise<T>): Promise<T> {
  const begin = performance.now()
  const timer = json ? undefined : setInterval(() => { stderr.write(`${step}: ${Math.round((performance.now() - begin) / 1000)} s\n`) }, INTERVAL)
  try {
    return await run()
  } finally {
    clearInterval(timer)
  }
}
