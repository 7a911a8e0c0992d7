import { Connection } from './connection.ts'
import type { PreparedLoad } from './load.ts'
import type { Round } from './round.ts'

const CONNECTIONS = 8

/** Sends every request of a load once, checks its answer and stores it. */
export async function learnAnswers (load: PreparedLoad, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let next = 0
  let answered = 0
  const round: Pick<Round, 'load' | 'answered' | 'fail'> = {
    load,
    answered: (connection) => {
      if (++answered === load.size) resolve()
      else if (next < load.size) connection.send(next++, 0)
    },
    fail: reject
  }
  const connections = Array.from({ length: Math.min(CONNECTIONS, load.size) }, () => new Connection(round as Round))
  try {
    await Promise.all(connections.map((connection) => connection.open(port)))
    for (const connection of connections) connection.send(next++, 0)
    await promise
  } finally {
    for (const connection of connections) connection.close()
  }
}
