import type { MongoClient } from 'mongodb'
import { TIMERS, type Timers } from '../../timers.ts'
import { ReconnectedError } from '../port.ts'
import { within } from './bounded-calls.ts'
import { closeClient, ping } from './client.ts'

/** Milliseconds between two checks. */
const INTERVAL = 1_000

/** Checks in a row without an answer after which a client is lost, when the driver sees no server. */
const LOST = 3

/** The same when the driver sees a server: then the calls in flight may just be slow. */
const LOST_SERVER_UP = 10

/** Back-off after a failed replacement: one check, then at most this many. */
const MAX_BACKOFF = 2

/** The deadline for a replacement to answer is that of a call, but at most this many milliseconds. */
const MAX_CONNECT = 10_000

export interface WatchedClientOptions {
  /** Makes a client, which the WatchedClient closes. */
  create: () => MongoClient | Promise<MongoClient>
  onError?: ((error: unknown) => void) | undefined
  /** Milliseconds that one call may take. */
  timeout: number
  timers?: Timers
}

/**
 * Replaces the driver's client when it does not recover. After its connections were cut, the driver (7.9) may never
 * reconnect: its monitor waits for 'drain' on a closed socket (connection.js, writeCommand) and never checks the server again.
 *
 * The checks need no traffic: if no call was answered since the last check, the server is pinged. A lost client stays in
 * use until a new one has answered a ping. There is one attempt at a time, so there is at most one client besides the lost one.
 */
export class WatchedClient {
  readonly #options: WatchedClientOptions
  readonly #timers: Timers
  #current: MongoClient | null = null
  /** The client of the attempt in progress. */
  #candidate: MongoClient | null = null
  #timer: NodeJS.Timeout | undefined
  #closed = false
  /** Answers so far, and their number at the last check. */
  #answers = 0
  #checked = 0
  /** Checks in a row without an answer. */
  #silent = 0
  /** Whether the driver sees a server. */
  #serverUp = true
  /** The client with a ping in flight. */
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

  /** To be called when the current client has answered a call. */
  onAnswer (): void {
    this.#answers++
  }

  async ping (): Promise<void> {
    await ping(this.current)
  }

  /** Closes the current client, and the candidate of an attempt in progress. */
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
      this.#options.onError?.(new ReconnectedError(`MongoDB client replaced after ${silence} s without an answer`))
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
