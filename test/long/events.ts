import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createFeed } from '../../lib/events/feed.ts'
import { createRelay } from '../../lib/events/relay.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Event } from '../../schemas/event.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'

const CHILD = fileURLToPath(new URL('../fixtures/changing-child.ts', import.meta.url))

export interface EventKillResult {
  kills: number
  changes: number
  events: number
  gaps: number
  problems: string[]
}

/** Runs a process that changes users until it has printed `count` changes, and kills it. */
async function runUntilKilled (database: string, name: string, rate: number, count: number, tell: (line: string) => void): Promise<void> {
  const child = spawn(process.execPath, [CHILD, database, name, String(rate)], { stdio: ['ignore', 'pipe', 'inherit'] })
  let lines = 0
  let rest = ''
  for await (const chunk of child.stdout.setEncoding('utf8') as AsyncIterable<string>) {
    const all = (rest + chunk).split('\n')
    rest = all.pop()!
    all.forEach(tell)
    lines += all.length
    if (lines > count) child.kill('SIGKILL')
  }
  if (lines <= count) throw new Error('the process ended by itself')
}

/**
 * Runs two processes at a time that change users and publish events, and kills each in the middle, repeatedly. Then compares
 * changes with events.
 * @param first the number of the first kill, on which its time depends
 */
export async function killRelays (database: string, kills: number, rate: number, first = 0): Promise<EventKillResult> {
  const result: EventKillResult = { kills, changes: 0, events: 0, gaps: 0, problems: [] }
  const store = await openStore(database, { collections: COLLECTIONS, now: Date.now })
  const acknowledged = new Map<string, number>()
  const deleted = new Set<string>()
  const tell = (line: string) => {
    const [sign, id = ''] = line.split(' ')
    if (sign === '+') acknowledged.set(id, (acknowledged.get(id) ?? 0) + 1)
    if (sign === '-') deleted.add(id)
    if (sign !== 'ready') result.changes++
  }
  let round = first
  const lane = async () => {
    while (round < first + kills) {
      const own = round++
      await runUntilKilled(database, `r${own}`, rate / 2, 20 + (own * 377) % 700, tell)
    }
  }
  await Promise.all([lane(), lane()])
  const relay = createRelay({ store, now: () => Date.now() + 60_000, days: 400, onPublished: () => {}, onError: (error) => { result.problems.push(String(error)) } })
  for (let count = 0; count < 3; count++) await relay.flush()
  const feed = createFeed({ store })
  const events: Event[] = []
  for (let after = await feed.first(); ;) {
    const read = await feed.read({ after })
    if (read.after === after) break
    events.push(...read.events)
    after = read.after
  }
  result.events = events.length
  result.gaps = await store.collection('events').count() - events.length
  const updates = new Map<string, number>()
  const removals = new Map<string, number>()
  const ids = new Set(events.map(({ id }) => id))
  if (ids.size !== events.length) result.problems.push('an event is there twice')
  for (const { type, target } of events) {
    if (type === 'user.updated') {
      updates.set(target.id, (updates.get(target.id) ?? 0) + 1)
      if (removals.has(target.id)) result.problems.push(`${target.id} was changed after its deletion`)
    }
    if (type === 'user.deleted') removals.set(target.id, (removals.get(target.id) ?? 0) + 1)
  }
  const there = new Set<string>()
  for await (const batch of store.collection<UserRecord>('users').stream()) {
    for (const { id, revision } of batch) {
      there.add(id)
      if (revision !== (updates.get(id) ?? 0)) result.problems.push(`${id}: ${revision} changes, ${updates.get(id)} events`)
      if (removals.has(id)) result.problems.push(`${id} is there, and its deletion is an event`)
    }
  }
  for (const [id, count] of acknowledged) if ((updates.get(id) ?? 0) < count) result.problems.push(`${id}: ${count} acknowledged changes, ${updates.get(id)} events`)
  for (const id of deleted) if (removals.get(id) !== 1) result.problems.push(`${id}: deleted, with ${removals.get(id)} events`)
  for (const { type, target } of events) if (type === 'user.created' && !there.has(target.id) && removals.get(target.id) !== 1) result.problems.push(`${target.id} is gone without an event`)
  await relay.close()
  await store.close()
  return result
}

/** The long test: 100 kills under 500 changes a second on SQLite, and on MongoDB where there is a server. */
export async function run (kills = 100, rate = 500): Promise<string | false> {
  const directory = mkdtempSync(join(tmpdir(), 'identity-events-'))
  const url = process.env.MONGODB_URL
  const texts: string[] = []
  try {
    for (const database of [`sqlite:${join(directory, 'events.db')}`, ...(url === undefined ? [] : [`${url}/events_${process.pid}`])]) {
      const { changes, events, gaps, problems } = await killRelays(database, kills, rate)
      console.log(problems.slice(0, 20).join('\n'))
      if (problems.length > 0) return false
      texts.push(`${database.split(':')[0]}: ${changes} acknowledged changes, ${events} events, ${gaps} gaps, ${kills} kills`)
    }
    return texts.join('; ')
  } finally {
    rmSync(directory, { recursive: true })
  }
}
