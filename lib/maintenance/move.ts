import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Clock, toTimestamp } from '../clock.ts'
import { readFirst } from '../lists/first.ts'
import { type CollectionSpec, type Document, DuplicateKeyError, type Store } from '../store/port.ts'
import type { FoundState, Move, StateRecord, StoreState } from '../store/state.ts'

/** Batches that are written concurrently. */
const AT_ONCE = 4
/** Batches between two checkpoints. */
const RECORDED = 50
/** Milliseconds. Documents that expire sooner are not compared, because a store may remove them meanwhile. */
const HORIZON = 60 * 60 * 1000

/** A store, and its name without credentials. */
interface End {
  store: Store
  name: string
}

/** The progress of a move: the number of documents of a collection. */
export interface MoveProgress {
  step: 'copy' | 'compare'
  collection: string
  documents: number
}

/** A collection that is the same at both ends. */
interface Compared {
  collection: string
  documents: number
  /** SHA-256 of the compared documents in the order of their ids, base64url. */
  checksum: string
}

export interface MoveOptions {
  from: End
  to: End
  collections: readonly CollectionSpec[]
  now: Clock
  onProgress?: (progress: MoveProgress) => void
  /** Aborts the move. Another call of `move` continues it. */
  signal?: AbortSignal
}

async function change (record: StateRecord, found: FoundState, by: Partial<StoreState>): Promise<FoundState> {
  const next = await record.change(found, by)
  if (next === null) throw new Error('another command changed the marks of the move: call `move` once, and wait for it')
  return next
}

/** The move that a store takes part in. */
function requireMove ({ state: { move } }: FoundState): Move {
  if (move === undefined) throw new Error('the mark of the move is gone: somebody has withdrawn it meanwhile')
  return move
}

const setMove = (record: StateRecord, found: FoundState, by: Partial<Move>) => change(record, found, { move: { ...requireMove(found), ...by } })

async function findUsed (store: Store, collections: readonly CollectionSpec[]): Promise<string | undefined> {
  for (const { name } of collections) {
    if (await readFirst(store.collection(name)) !== undefined) return name
  }
  return undefined
}

/** Reads the next batch while the current one is processed. */
async function * readAhead<T> (batches: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  const iterator = batches[Symbol.asyncIterator]()
  const read = () => {
    const next = iterator.next()
    next.catch(() => {})
    return next
  }
  let next = read()
  try {
    for (let { done, value } = await next; !done; { done, value } = await next) {
      next = read()
      yield value
    }
  } finally {
    await next.catch(() => {})
    await iterator.return?.()
  }
}

/** Marks both ends, the source first, unless they are already marked for the same move. */
async function mark ({ from, to, collections, now }: MoveOptions): Promise<[source: FoundState, target: FoundState]> {
  const source = await from.store.state.read()
  const target = await to.store.state.read()
  const previous = source.state.move
  if (previous?.role === 'target') throw new Error(`from: is the target of an unfinished move from ${previous.other}`)
  if (previous !== undefined && target.state.move?.role === 'target' && target.state.move.id === previous.id) return [source, target]
  if (previous?.isDone) throw new Error(`from: was moved to ${previous.other} on ${previous.since}`)
  if (target.state.move !== undefined) {
    throw new Error(`to: takes part in another move, ${target.state.move.role === 'target' ? 'from' : 'to'} ${target.state.move.other}: use an empty database`)
  }
  const used = await findUsed(to.store, collections)
  if (used !== undefined) throw new Error(`to: is not empty, there are ${used}`)
  const move = { id: randomUUID(), since: toTimestamp(now()) }
  const marked = await change(from.store.state, source, { move: { ...move, role: 'source', other: to.name } })
  const { state: { version, oldestReader } } = marked
  // Read again: from and to may be one database, under two names.
  const found = await to.store.state.read()
  if (found.state.move?.id === move.id) {
    await change(from.store.state, found, { move: undefined })
    throw new Error('to: is the same database')
  }
  return [marked, await change(to.store.state, found, { version, oldestReader, move: { ...move, role: 'target', other: from.name } })]
}

function toExpiry (document: Document, { expiry }: CollectionSpec): number {
  const value = expiry === undefined ? undefined : (document as unknown as Record<string, unknown>)[expiry]
  return typeof value === 'string' ? Date.parse(value) : Number.POSITIVE_INFINITY
}

/** Writes a batch. Some of its documents exist already if the move was interrupted after the last checkpoint. */
async function write (store: Store, name: string, documents: Document[]): Promise<void> {
  const collection = store.collection(name)
  try {
    await collection.insertMany(documents)
  } catch (error) {
    if (!(error instanceof DuplicateKeyError)) throw error
    await Promise.all(documents.map((document) => collection.put(document)))
  }
}

async function copy ({ from, to, collections, now, onProgress, signal }: MoveOptions, begun: FoundState): Promise<FoundState> {
  let target = begun
  const { at } = requireMove(begun)
  const first = at === undefined ? 0 : collections.findIndex(({ name }) => name === at.collection)
  for (const [index, spec] of collections.entries()) {
    if (index < first) continue
    signal?.throwIfAborted()
    const { name } = spec
    const writing: { done: Promise<void>, last: string }[] = []
    let [documents, batches] = [0, 0]
    const settle = async () => {
      const { done, last } = writing.shift()!
      await done
      if (++batches % RECORDED === 0) target = await setMove(to.store.state, target, { at: { collection: name, id: last } })
    }
    try {
      const query = index === first && at?.id !== undefined ? { after: { values: [], id: at.id } } : {}
      for await (const batch of readAhead(from.store.collection(name).stream(query))) {
        signal?.throwIfAborted()
        const time = now()
        const done = write(to.store, name, batch.filter((document) => toExpiry(document, spec) > time))
        // Awaited later, in order, after other writes have started.
        done.catch(() => {})
        writing.push({ done, last: batch.at(-1)!.id })
        if (writing.length >= AT_ONCE) await settle()
        onProgress?.({ step: 'copy', collection: name, documents: documents += batch.length })
      }
      while (writing.length > 0) await settle()
    } finally {
      await Promise.allSettled(writing.map(({ done }) => done))
    }
    const next = collections[index + 1]
    if (next !== undefined) target = await setMove(to.store.state, target, { at: { collection: next.name } })
  }
  return target
}

/** A document as text that does not depend on the order of its fields. */
function toText (document: Document): string {
  return JSON.stringify(document, (_key, value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1))
    : value)
}

async function * readTexts (store: Store, spec: CollectionSpec, horizon: number): AsyncGenerator<{ id: string, text: string }> {
  for await (const batch of readAhead(store.collection(spec.name).stream())) {
    for (const document of batch) if (toExpiry(document, spec) > horizon) yield { id: document.id, text: toText(document) }
  }
}

/** Reads both ends side by side, in the order of ids. */
async function compare ({ from, to, now, onProgress, signal }: MoveOptions, spec: CollectionSpec): Promise<Compared> {
  signal?.throwIfAborted()
  const horizon = now() + HORIZON
  const [source, target] = [from, to].map(({ store }) => readTexts(store, spec, horizon)) as [ReturnType<typeof readTexts>, ReturnType<typeof readTexts>]
  const hash = createHash('sha256')
  let documents = 0
  try {
    for (;;) {
      const [a, b] = await Promise.all([source.next(), target.next()])
      if (a.done && b.done) break
      if (a.value?.text !== b.value?.text) {
        throw new Error(`the two databases differ in ${spec.name}, after ${documents} equal documents: empty the target, and call \`move\` again`)
      }
      hash.update(`${a.value!.text}\n`)
      if (++documents % 1000 === 0) {
        signal?.throwIfAborted()
        onProgress?.({ step: 'compare', collection: spec.name, documents })
      }
    }
  } finally {
    await Promise.all([source.return(undefined), target.return(undefined)])
  }
  return { collection: spec.name, documents, checksum: hash.digest('base64url') }
}

/**
 * Moves all documents of a store into an empty one. From then on, the source refuses writes, and services refuse to start on it.
 * After an interruption at any point, another call continues the move. The target can be used after all documents were compared.
 * @throws Error that tells the operator what to do
 */
export async function move (options: MoveOptions): Promise<Compared[]> {
  const { from, to, collections } = options
  let [source, target] = await mark(options)
  if (!requireMove(source).isDone) {
    if (!requireMove(source).isQuiet) {
      await sleep(from.store.state.delay, undefined, options.signal && { signal: options.signal })
      source = await setMove(from.store.state, source, { isQuiet: true })
    }
    target = await copy(options, target)
  }
  const compared: Compared[] = []
  for (const spec of collections) compared.push(await compare(options, spec))
  if (!requireMove(source).isDone) await setMove(from.store.state, source, { isDone: true })
  await change(to.store.state, target, { move: undefined })
  return compared
}

/**
 * Removes the mark of a move from its source, so that services can use it again. The target keeps its mark.
 * @returns whether the move was finished
 * @throws Error when the store is not the source of a move
 */
export async function withdrawMove (store: Store): Promise<{ other: string, isDone: boolean }> {
  const found = await store.state.read()
  const { move } = found.state
  if (move === undefined) throw new Error('from: takes part in no move')
  if (move.role === 'target') throw new Error('from: is the target of a move, and may lack what the source has: call `move` again, or remove this database')
  await change(store.state, found, { move: undefined })
  return { other: move.other, isDone: move.isDone === true }
}
