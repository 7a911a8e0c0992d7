import { IdentityError } from '../errors.ts'
import { FairQueue } from '../fair-queue.ts'
import { type Actor, toTurn } from '../roles.ts'
import { BATCH_SIZE, type Collection, type Document, type Filter, type Rendering, type Store } from '../store/port.ts'
import { type Hold, type Page, type PageRequest, mapBatches, readPage } from './cursor.ts'
import { planBegins, readCommonPage } from './search.ts'

/** Concurrent pages, and concurrent counts. SQLite has one thread for both, and a few reads are enough to keep it busy. */
const SLOTS: Record<string, number> = { sqlite: 8 }
const MANY = 64

/** The engines that are told how to find words. MongoDB decides by itself, and the deadline of the store bounds what it does. */
const WALKING = ['sqlite']

/** Reads that may wait, the longest wait in milliseconds, and the estimated milliseconds per read until durations are measured. */
const LIMITS = { places: 10_000, maxWait: 10_000, duration: 1 }

/**
 * The cursors of a process: as many streams hold one at once. Administrators and the program itself have their own, so that people
 * cannot keep them waiting, and each user has few of them. Nothing else reads by a cursor.
 */
const PEOPLE = 48
const ADMINISTRATORS = 16
const EACH = 8

type Caller = Pick<Actor, 'user_id' | 'isAdmin' | 'signal'>

/** The queues are those of the store, so that all rooms share them. */
const all = new WeakMap<object, Reads>()

/**
 * Reads that may go through a whole collection. Callers take turns. A waiting read is dropped when its caller disconnects, because the
 * store does not notice that and would still execute it.
 */
class Reads {
  readonly #walks: boolean
  readonly #counts: FairQueue
  readonly #pages: FairQueue
  readonly #people = new FairQueue({ what: 'lists', slots: PEOPLE, ...LIMITS })
  readonly #administrators = new FairQueue({ what: 'lists', slots: ADMINISTRATORS, ...LIMITS })
  /** The streams of each user, including those that wait for a cursor. */
  readonly #streams = new Map<string, number>()

  constructor (slots: number, walks: boolean) {
    this.#walks = walks
    this.#counts = new FairQueue({ what: 'counts', slots, ...LIMITS })
    this.#pages = new FairQueue({ what: 'lists', slots, ...LIMITS })
  }

  /** @param caller absent: the program itself */
  async count (read: () => Promise<number>, caller?: Caller): Promise<number> {
    return await this.#counts.run(read, caller && toTurn(caller))
  }

  /** A filter with the way in which the engine finds its words, if it has a choice. */
  async plan<T extends Document> (collection: Collection<T>, { begins, ...others }: Filter): Promise<Filter> {
    if (begins === undefined) return others
    return { ...others, begins: this.#walks ? await planBegins(collection, begins.words) : begins }
  }

  /** See readPage. */
  async page<T extends Document, V> (
    collection: Collection<T>, query: PageRequest, toView: (record: T) => V, { renderer, caller }: {
      renderer?: Omit<Rendering, 'separator'>, caller?: Caller | undefined
    } = {}
  ): Promise<Page<V>> {
    const hold: Hold = (open) => this.#hold(open, caller)
    return await this.#pages.run(async () => {
      const { limit = 0 } = query
      const planned = query.filter === undefined ? query : { ...query, filter: await this.plan(collection, query.filter) }
      const isWalked = planned.filter?.begins?.isCommon === true && limit > 0 && limit <= BATCH_SIZE
      if (!isWalked) return await readPage(collection, planned, toView, hold, renderer)
      const { batches, ...neighbours } = await readCommonPage(collection, planned)
      return { batches: mapBatches(batches, toView), ...neighbours }
    }, caller && toTurn(caller))
  }

  /** The batches of a page, for the program itself. */
  async * list<T extends Document, V> (collection: Collection<T>, query: PageRequest, toView: (record: T) => V): AsyncGenerator<V[], void, undefined> {
    yield * (await this.page(collection, query, toView)).batches
  }

  /** @throws ErrLimit when the caller already reads EACH lists; ErrBusy when no cursor becomes free in time */
  async * #hold<B> (open: () => AsyncIterable<B>, caller?: Caller): AsyncGenerator<B, void, undefined> {
    const leave = this.#enter(caller?.user_id)
    const entered = Promise.withResolvers<void>()
    const left = Promise.withResolvers<void>()
    const queue = caller === undefined || caller.isAdmin ? this.#administrators : this.#people
    const held = queue.run(async () => {
      entered.resolve()
      await left.promise
    }, caller && toTurn(caller))
    try {
      await Promise.race([entered.promise, held])
      yield * open()
    } finally {
      left.resolve()
      leave()
    }
  }

  #enter (user = ''): () => void {
    // The program itself, and the command line.
    if (user === '') return () => {}
    const count = this.#streams.get(user) ?? 0
    if (count >= EACH) {
      throw new IdentityError('ErrLimit', `more than ${EACH} long lists are being read at once`, { headers: { 'retry-after': '1' } })
    }
    this.#streams.set(user, count + 1)
    return () => {
      const left = this.#streams.get(user)! - 1
      if (left === 0) this.#streams.delete(user)
      else this.#streams.set(user, left)
    }
  }
}

export function createReads (store: Store): Reads {
  let reads = all.get(store)
  if (reads === undefined) all.set(store, reads = new Reads(SLOTS[store.engine] ?? MANY, WALKING.includes(store.engine)))
  return reads
}
