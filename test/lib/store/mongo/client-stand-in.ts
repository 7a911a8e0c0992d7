import { EventEmitter } from 'node:events'
import type { MongoClient } from 'mongodb'

/** A stand-in for the driver's client, which answers a ping when the test says so. */
export class ClientStandIn extends EventEmitter {
  /** Pings without an answer yet. */
  pings: PromiseWithResolvers<void>[] = []
  /** Number of pings so far. */
  count = 0
  answers = false
  closed = 0

  db (): unknown {
    return {
      command: async () => {
        this.count++
        if (this.answers) return
        const ping = Promise.withResolvers<void>()
        this.pings.push(ping)
        await ping.promise
      },
      listCollections: () => ({ toArray: async () => [] }),
      collection: () => ({ createIndexes: async () => [], findOne: async () => null, updateOne: async () => ({}) })
    }
  }

  /** Answers all pending pings, and every later one. */
  answer (): void {
    this.answers = true
    for (const { resolve } of this.pings.splice(0)) resolve()
  }

  fail (error: Error): void {
    for (const { reject } of this.pings.splice(0)) reject(error)
  }

  /** Emits the driver's event for a server that is found, or for none. */
  see (type: 'Standalone' | 'Unknown'): void {
    this.emit('topologyDescriptionChanged', { newDescription: { servers: new Map([['host:27017', { type }]]) } })
  }

  async close (): Promise<void> {
    this.closed++
    this.fail(new Error('the client is closed'))
  }

  asClient (): MongoClient {
    return this as unknown as MongoClient
  }
}
