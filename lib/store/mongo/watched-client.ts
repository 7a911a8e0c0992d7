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

/** Milliseconds without a known server after which calls fail at once. The driver alone would let each wait for its timeout. */
const PATIENCE = 1_000

/** Back-off after a failed replacement: one check, then at most this many. */
const MAX_BACKOFF = 2

/** The deadline for a replacement to answer is that of a call, but at most this many milliseconds. */
const MAX_CONNECT = 10_000

export interface WatchedClientOptions {
  /** Makes a client, which the WatchedClient closes. */
  create: () => MongoClient | Promise<MongoClient>
  onError?: ((error: unknown) => void) | undefined
  /** Called while no server is known, to fail the calls in flight. */
  onOutage?: ((error: Error) => void) | undefined
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
 *
 * During an outage calls fail at once: no caller waits for a server that is not there. The pings find out when it is back.
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
  /** When the last call was answered, and since when the driver sees no server; null while it sees one. */
  #answeredAt = Number.NEGATIVE_INFINITY
  #downSince: number | null = null
  #outage: NodeJS.Timeout | undefined
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
    this.#answeredAt = this.#timers.now()
    this.#silent = 0
  }

  /** Throws when no server has been known for a second, or when the one that is known answers nothing, pings included. */
  admit (): void {
    const error = this.#findOutage()
    if (error !== null) throw error
  }

  async ping (): Promise<void> {
    await ping(this.current)
  }

  /** Closes the current client, and the candidate of an attempt in progress. */
  async close (): Promise<void> {
    this.#closed = true
    this.#timers.clear(this.#timer)
    this.#timers.clear(this.#outage)
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
    void this.#probe()
    if (!this.#replacing && this.#silent >= Math.max(this.#due, this.#downSince === null ? LOST_SERVER_UP : LOST)) void this.#replace()
  }

  async #probe (): Promise<void> {
    const { current: client } = this
    try {
      // Each check sends one, though others may hang: it makes the driver look for the server again, or takes another connection.
      await within(this.#options.timeout, () => ping(client), this.#timers)
      if (client === this.#current) this.onAnswer()
    } catch {
      // The next check notices.
    }
  }

  #findOutage (): Error | null {
    if (this.#downSince !== null) {
      const time = this.#timers.now() - Math.max(this.#downSince, this.#answeredAt)
      return time < PATIENCE ? null : new Error(`no MongoDB server could be reached for ${Math.floor(time / 1_000)} s`)
    }
    return this.#silent < LOST ? null : new Error(`the MongoDB server has answered nothing for ${this.#silent} s`)
  }

  /** The driver sees a server, or none. */
  #see (isUp: boolean): void {
    if (isUp === (this.#downSince === null)) return
    this.#timers.clear(this.#outage)
    this.#downSince = isUp ? null : this.#timers.now()
    if (isUp || this.#closed) return
    const fail = () => {
      this.#outage = this.#timers.set(fail, PATIENCE)
      const error = this.#findOutage()
      if (error !== null) this.#options.onOutage?.(error)
    }
    this.#outage = this.#timers.set(fail, PATIENCE)
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
      void this.#close(old)
      this.#options.onError?.(new ReconnectedError(`MongoDB client replaced after ${silence} s without an answer`))
    } catch {
      this.#due = this.#silent + Math.min(++this.#failures, MAX_BACKOFF)
    } finally {
      this.#replacing = false
    }
  }

  #use (client: MongoClient): void {
    this.#current = client
    this.#see(true)
    client.on('topologyDescriptionChanged', ({ newDescription }) => {
      if (client === this.#current) this.#see([...newDescription.servers.values()].some(({ type }) => type !== 'Unknown'))
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
        if (expired) void this.#close(client)
        if (expired || this.#closed) throw new Error('the MongoClient was made too late')
        this.#candidate = client
        await ping(client)
        return client
      }, this.#timers)
    } catch (error) {
      expired = true
      if (client !== undefined && client !== this.#current) void this.#close(client)
      throw error
    } finally {
      this.#candidate = null
    }
  }

  async #close (client: MongoClient | null): Promise<void> {
    if (client !== null) await closeClient(client, this.#options.timeout, this.#timers)
  }
}
