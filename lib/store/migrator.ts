import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { RESERVED_SCOPES } from '../api-scopes.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { LeaseWatch } from '../deadline.ts'
import { defined } from '../defined.ts'
import { retryWrite } from '../retry.ts'
import { TIMERS } from '../timers.ts'
import { hasWords, toClientWords, toUserWords } from '../words.ts'
import { type Change, type Document, type Filter, type Json, OutdatedError, type Store } from './port.ts'
import { scan } from './scan.ts'
import type { FoundState, Layout, StoreState } from './state.ts'

/** Changes every document of a collection to a later layout. */
export interface Step {
  /** The layout that this step leads to. */
  version: number
  collection: string
  /**
   * The change, or null for a document that already has the new layout: a step may run again, also concurrently in another process.
   * `where` prevents it from overwriting a concurrent write of an earlier release, which oldestReader may allow.
   */
  toChange (document: Document & Record<string, Json>): { change: Change, where?: Filter } | null
}

/** Marks the clients that had a scope before its name was reserved. Clients do not get such scopes any more. */
const markReserved: Step = {
  version: 5,
  collection: 'clients',
  toChange ({ scopes, reserved, revision }) {
    const isMarked = reserved === true || !Array.isArray(scopes) || !scopes.some((scope) => RESERVED_SCOPES.has(String(scope)))
    if (isMarked) return null
    const change: Change = { set: { reserved: true } }
    return typeof revision === 'number' ? { change, where: { equal: { revision } } } : { change }
  }
}

type Read = Parameters<Step['toChange']>[0]

/** Gives documents the words by which they are found (../words.ts), also where those of an earlier name are there. */
function toWordStep (collection: string, toWords: (document: Read) => string[]): Step {
  return {
    version: 7,
    collection,
    toChange (document) {
      const { revision, words } = document
      const wanted = toWords(document)
      if (hasWords(words as string[] | undefined, wanted)) return null
      const change: Change = { set: { words: wanted } }
      return typeof revision === 'number' ? { change, where: { equal: { revision } } } : { change }
    }
  }
}

const toText = (value: Json | undefined): string | undefined => typeof value === 'string' ? value : undefined

/** The steps of the words, each with the key of the time of the last change. */
const WORD_STEPS = [
  {
    key: 'modified_at',
    step: toWordStep('users', ({ account, email, name }) => toUserWords({ account: toText(account) ?? '', email: toText(email), name: toText(name) }))
  },
  { key: 'modifiedAt', step: toWordStep('clients', ({ id, name }) => toClientWords({ id, name: toText(name) })) }
]

/** The steps from earlier layouts to this one that depend on nothing else. */
export const STEPS: readonly Step[] = [markReserved, ...WORD_STEPS.map(({ step }) => step)]

/** Milliseconds by which the clocks of processes may differ, and a migration may take. */
const MARGIN = 3_600_000

/** Milliseconds between two checks of the words: the workers of a service start together. */
const BETWEEN_CHECKS = 60_000

/** Milliseconds after which another process takes over from a migrator that died. */
const LEASE = 30_000
/** Milliseconds between two polls for the end of another process's migration. */
const POLL = 500
/** Concurrent writes. */
const AT_ONCE = 64

export interface MigratorOptions {
  layout: Layout
  steps?: readonly Step[] | undefined
  now: Clock
  /** The step that marks administrators. It also runs when it last ran for a role of another name. */
  marking?: { role: string, step: Step } | undefined
  /** The step that judges the addresses of earlier layouts. It runs once, at the first start that knows the upstreams. */
  judging?: Step | undefined
  /** For tests. */
  lease?: number | undefined
}

/** What a start changes in a store of an earlier layout, or of other options. */
export interface Migration {
  from: number
  to: number
  /** Whether processes of earlier releases can no longer write. */
  shuts_out_earlier: boolean
  /** The collections whose every record is read. */
  reads: string[]
}

type Planned = Pick<MigratorOptions, 'layout' | 'steps' | 'marking' | 'judging'>

/** The steps that a store in this state still needs. */
function findPending ({ version, admin_role, addresses_judged = false }: StoreState, { layout, steps = STEPS, marking, judging }: Planned): Step[] {
  const pending = steps.filter((step) => step.version > version && step.version <= layout.version)
  if (marking !== undefined && marking.role !== admin_role) pending.push(marking.step)
  if (judging !== undefined && !addresses_judged) pending.push(judging)
  return pending
}

/** What a start makes of a store in this state. */
export function planMigration (state: StoreState, options: Planned): Migration {
  const { version, oldestReader } = options.layout
  return {
    from: state.version,
    to: version,
    shuts_out_earlier: state.oldestReader < oldestReader,
    reads: [...new Set(findPending(state, options).map(({ collection }) => collection))]
  }
}

/** @throws OutdatedError for a store of an earlier layout */
export async function requireLayout (store: Store, layout: Layout): Promise<void> {
  const { state } = await store.state.read()
  if (state.version < layout.version) throw new OutdatedError(state, store.state.delay)
}

/**
 * Migrates the documents to a layout. One process at a time does this, under a lease; the others wait. First it shuts out the
 * earlier releases that cannot read the new layout. Then it changes the documents one by one. In the end it stores the version.
 * After a crash, the next process starts again, and skips documents that are done.
 */
export async function migrateDocuments (store: Store, { now, lease = LEASE, ...planned }: MigratorOptions): Promise<void> {
  const { layout, marking, judging } = planned
  const id = randomUUID()
  // Its holder may wait for so long before the first renewal.
  const leases = new LeaseWatch({ now, timers: TIMERS, lease: lease + store.state.delay })
  for (;;) {
    const found = await store.state.read()
    const { version, oldestReader, migrator } = found.state
    const pending = findPending(found.state, planned)
    if (version >= layout.version && pending.length === 0) return
    if (migrator !== undefined && !leases.isOver({ id: migrator.id, claim: 0 }, migrator.until)) {
      await sleep(POLL)
      continue
    }
    // Also without a step: a later one, which takes the configuration, must meet no write of an earlier release.
    const wait = oldestReader < layout.oldestReader ? store.state.delay : 0
    const claim = () => ({ id, until: toTimestamp(now() + lease + wait) })
    let held = await store.state.change(found, { migrator: claim(), oldestReader: Math.max(oldestReader, layout.oldestReader) })
    if (held === null) continue
    await sleep(wait)

    const started = toTimestamp(now())
    const renew = async (): Promise<boolean> => {
      const { until } = (held as FoundState).state.migrator!
      if (Date.parse(until) - now() > lease / 2) return true
      held = await store.state.change(held as FoundState, { migrator: claim() })
      return held !== null
    }
    if (!await runSteps(store, pending, renew)) continue
    const done = defined({
      version: Math.max(version, layout.version),
      admin_role: marking?.role,
      addresses_judged: judging ? true : undefined,
      words_checked: pending.some((step) => WORD_STEPS.some((one) => one.step === step)) ? started : undefined
    })
    if (await store.state.change(held, { ...done, migrator: undefined }) !== null) return
  }
}

/**
 * Corrects the words of what earlier releases have written: while a service is updated process by process, or after it went back to one. They
 * know no words, and leave them as they are. Each start looks at what has changed since the last one did, so that nothing is left for ever.
 */
export async function recheckWords (store: Store, { now }: { now: Clock }): Promise<void> {
  const time = now()
  const found = await store.state.read()
  const checked = found.state.words_checked
  const age = time - Date.parse(checked ?? '')
  if (age >= 0 && age < BETWEEN_CHECKS) return
  const since = checked === undefined ? '' : toTimestamp(Date.parse(checked) - MARGIN)
  for (const { key, step } of WORD_STEPS) {
    for await (const batch of scan<Document & Record<string, Json>>(store.collection(step.collection), { since: { [key]: since } }, { key })) {
      await Promise.all(batch.filter((document) => step.toChange(document) !== null).map((document) => changeDocument(store, step, document)))
    }
  }
  // Another process that starts may have stored its own time.
  await store.state.change(found, { words_checked: toTimestamp(time) })
}

/** @returns false when another process has taken over */
async function runSteps (store: Store, steps: readonly Step[], renew: () => Promise<boolean>): Promise<boolean> {
  for (const step of steps) {
    for await (const batch of scan(store.collection(step.collection), {})) {
      for (let start = 0; start < batch.length; start += AT_ONCE) {
        if (!await renew()) return false
        await Promise.all(batch.slice(start, start + AT_ONCE).map((document) => changeDocument(store, step, document)))
      }
    }
  }
  return true
}

async function changeDocument (store: Store, { collection: name, toChange }: Step, read: Document): Promise<void> {
  const collection = store.collection(name)
  let document: Document | null = read
  await retryWrite('a document of an earlier layout', async () => {
    const needed: ReturnType<Step['toChange']> = document === null ? null : toChange(document as Parameters<Step['toChange']>[0])
    if (needed === null || await collection.update(read.id, needed.change, needed.where) !== null) return true
    document = await collection.get(read.id)
    return null
  })
}
