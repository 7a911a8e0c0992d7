import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { MongoClient } from 'mongodb'
import identity from '../../index.ts'
import { openStore } from '../../lib/store/index.ts'
import { SECRET_KEY } from '../seed.ts'
import { readOptions, serve } from './serve.ts'

// The service on a MongoDB-compatible server, whose commands are counted by the driver's monitoring.

const { database } = readOptions<{ database: string }>()

/** Milliseconds by performance.now(). */
interface Span { start: number, end: number }

interface Command extends Span {
  /** Absent: it began in the background. */
  request: FastifyRequest | undefined
}

const commands = new Map<number, Command>()
const requests: (Span & { request: FastifyRequest })[] = []
const current = new AsyncLocalStorage<FastifyRequest>()

const client = new MongoClient(database, { monitorCommands: true, maxPoolSize: 100 })
client.on('commandStarted', ({ requestId }) => commands.set(requestId, { request: current.getStore(), start: performance.now(), end: Infinity }))
const finish = ({ requestId }: { requestId: number }) => { commands.get(requestId)!.end = performance.now() }
client.on('commandSucceeded', finish)
client.on('commandFailed', finish)

const app = Fastify()
app.addHook('onRequest', (request, { raw }, done) => {
  const start = performance.now()
  raw.once('finish', () => requests.push({ request, start, end: performance.now() }))
  current.run(request, done)
})
// Reading the body has left the context.
app.addHook('preValidation', (request: FastifyRequest, _reply: FastifyReply, done: () => void) => current.run(request, done))
await app.register(identity, {
  store: await openStore(database, { client }),
  secretKey: SECRET_KEY,
  rateLimit: false,
  oidc: { signInLimit: false },
  mail: { local: true, send: async () => {} }
})

/** The longest chain of commands each of which began when the one before had ended. */
function countLatencies (spans: Span[]): number {
  let [count, last] = [0, -Infinity]
  for (const { start, end } of spans.toSorted((one, other) => one.end - other.end)) {
    if (start < last) continue
    count++
    last = end
  }
  return count
}

const calls = {
  /** For each request since the last call: its commands until its answer, and their latencies. */
  async readRequests (_params: null): Promise<{ commands: number, latencies: number }[]> {
    return requests.splice(0).map(({ request, end }) => {
      const own = [...commands.values()].filter((command) => command.request === request && command.start < end)
      return { commands: own.length, latencies: countLatencies(own) }
    })
  },

  /** Resolves to the number of commands that begin within so many milliseconds of the last answer, or of now. */
  async count ({ since, milliseconds }: { since: 'answer' | 'now', milliseconds: number }): Promise<number> {
    const from = since === 'now' ? performance.now() : requests.at(-1)!.end
    await wait(from + milliseconds - performance.now())
    return [...commands.values()].filter(({ start }) => start >= from && start < from + milliseconds).length
  }
}
export type CommandCalls = typeof calls

await serve(app, { calls })
