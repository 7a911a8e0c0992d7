import type { MongoClient } from 'mongodb'
import { TIMERS, type Timers } from '../../timers.ts'
import { within } from './bounded-calls.ts'
import { closeClient, ping } from './client.ts'

/** Milliseconds between two checks. */
const INTERVAL = 1_000

/** Checks in a row without an answer that make a client lost, when the driver knows no server that is up. */
const LOST = 3

/** The same when the driver believes that a server is up: then the calls in flight may just be slow. */
const LOST_SERVER_UP = 10

/** Checks to wait, at most, after a replacement failed. */
const MAX_BACKOFF = 2

/** Milliseconds for a new client to answer, at most. */
const MAX_CONNECT = 10_000

export interface WatchedClientOptions {
  /** Makes a client, which is then closed here. */
  create: () => MongoClient | Promise<MongoClient>
  onError?: ((error: unknown) => void) | undefined
  /** Milliseconds that one call may take. */
  timeout: number
  timers?: Timers
}

/**
 * A client that is replaced when it does not recover. The driver (7.9) may never reconnect after its connections were cut:
 * it waits for 'drain' on a closed socket, and does not look for the server any more (connection.js, writeCommand).
 *
 * Checks need no traffic: when no call was answered since the last one, the server is pinged. A lost client stays in use
 * until a new one has answered a ping, so that a server that is down costs no more than one attempt at a time.
 */
export class WatchedClient {
  readonly #options: WatchedClientOptions
  readonly #timers: Timers
  #current: MongoClient | null = null
  /** The new client of the attempt in progress. */
  #candidate: MongoClient | null = null
  #timer: NodeJS.Timeout | undefined
  #closed = false
  /** Answers so far, and their number at the last check. */
  #answers = 0
  #checked = 0
  /** Checks in a row without an answer. */
  #silent = 0
  #serverUp = true
  #probed: MongoClient | null = null
  #replacing = false
  #failures = 0
  /** The number of silent checks at which the next attempt starts. */
  #due = 0

  constructor (options: WatchedClientOptions) {
    this.#options = options
    const { now, set, clear } = options.timers ?? TIMERS
    // None of these timers keeps the process alive.
    this.#timers = { now, clear, set: (run, delay) => set(run, delay).unref() }
  }

  /** Makes the first client. Rejects when it does not answer in time. */
  async open (): Promise<void> {
    this.#use(await this.#connect(this.#options.timeout))
    this.#schedule()
  }

  get current (): MongoClient {
    if (this.#current === null) throw new Error('there is no client yet')
    return this.#current
  }

  /** The current client answered a call. */
  onAnswer (): void {
    this.#answers++
  }

  async ping (): Promise<void> {
    await ping(this.current)
  }

  /** Closes the current client, and the one that was about to replace it. */
  async close (): Promise<void> {
    this.#closed = true
    this.#timers.clear(this.#timer)
    await Promise.all([this.#current, this.#candidate].map((client) => this.#close(client)))
  }

  #schedule (): void {
    if (!this.#closed) this.#timer = this.#timers.set(this.#check, INTERVAL)
  }

  readonly #check = (): void => {
    this.#schedule()
    const answered = this.#answers > this.#checked
    this.#checked = this.#answers
    if (answered) {
      this.#silent = this.#failures = this.#due = 0
      return
    }
    this.#silent++
    this.#probe()
    if (!this.#replacing && this.#silent >= Math.max(this.#due, this.#serverUp ? LOST_SERVER_UP : LOST)) this.#replace()
  }

  async #probe (): Promise<void> {
    const { current: client } = this
    if (this.#probed === client) return
    this.#probed = client
    try {
      await within(this.#options.timeout, () => ping(client), this.#timers)
      if (client === this.#current) this.onAnswer()
    } catch {
      // The next check notices.
    } finally {
      if (this.#probed === client) this.#probed = null
    }
  }

  async #replace (): Promise<void> {
    const answers = this.#answers
    this.#replacing = true
    try {
      const client = await this.#connect(Math.min(this.#options.timeout, MAX_CONNECT))
      const old = this.#current
      if (this.#closed || this.#answers > answers) return await this.#close(client)
      const silence = this.#silent * INTERVAL / 1_000
      this.#use(client)
      this.onAnswer()
      this.#close(old)
      this.#options.onError?.(new Error(`MongoDB client replaced: it had not answered for ${silence} s, and a new one did at once`))
    } catch {
      this.#due = this.#silent + Math.min(++this.#failures, MAX_BACKOFF)
    } finally {
      this.#replacing = false
    }
  }

  #use (client: MongoClient): void {
    this.#current = client
    this.#serverUp = true
    client.on('topologyDescriptionChanged', ({ newDescription }) => {
      if (client === this.#current) this.#serverUp = [...newDescription.servers.values()].some(({ type }) => type !== 'Unknown')
    })
  }

  /** Makes a client and pings it; closes it when it does not answer in time. */
  async #connect (timeout: number): Promise<MongoClient> {
    let client: MongoClient | undefined
    let expired = false
    try {
      return await within(timeout, async () => {
        client = await this.#options.create()
        if (client === this.#current) throw new Error('the function returned the same MongoClient again')
        if (expired) this.#close(client)
        if (expired || this.#closed) throw new Error('the MongoClient was made too late')
        this.#candidate = client
        await ping(client)
        return client
      }, this.#timers)
    } catch (error) {
      expired = true
      if (client !== undefined && client !== this.#current) this.#close(client)
      throw error
    } finally {
      this.#candidate = null
    }
  }

  async #close (client: MongoClient | null): Promise<void> {
    if (client !== null) await closeClient(client, this.#options.timeout, this.#timers)
  }
}
