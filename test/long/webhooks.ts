import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createSecretBox } from '../../lib/crypto/secrets.ts'
import { createEvents, openRelay } from '../../lib/events/index.ts'
import { createOutbound } from '../../lib/outbound/fetcher.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createWebhooks } from '../../lib/webhooks/webhooks.ts'
import { createBase } from '../helpers/base.ts'

const CHILD = fileURLToPath(new URL('../fixtures/delivering-child.ts', import.meta.url))

/** Milliseconds beyond a lease. */
const BEYOND_LEASE = 61_000

/** Receives messages, and counts the copies of each. It answers after `delay` milliseconds. */
async function startReceiver (closers: (() => unknown)[], delay = 0) {
  const copies = new Map<string, number>()
  let total = 0
  const waiting = new Set<() => void>()
  const server = createServer((request, response) => {
    const id = String(request.headers['webhook-id'])
    const name = `${request.url} ${id}`
    request.resume().on('end', () => {
      if (id.startsWith('test_')) return response.writeHead(204).end()
      copies.set(name, (copies.get(name) ?? 0) + 1)
      total++
      const answer = () => response.writeHead(204).end()
      if (delay === 0) answer()
      else setTimeout(answer, delay)
      for (const check of waiting) check()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    copies,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    getTotal: () => total,
    async until (count: number) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const check = () => { if (total >= count) resolve() }
      waiting.add(check)
      check()
      await promise
      waiting.delete(check)
    }
  }
}

async function openParts (database: string, closers: (() => unknown)[], skew = 0) {
  const now = () => Date.now() + skew
  const store = await openStore(database, { collections: COLLECTIONS, now })
  closers.push(() => store.close())
  const key = randomBytes(32)
  const box = createSecretBox(key)
  const onError = (error: unknown) => { console.error(error) }
  const record = createEvents({ store, now, via: 'system', addresses: 'off', getKey: () => box.key, onError })
  const { recorder } = record
  const { events, close } = openRelay({ store, now, days: 400, record, onPublished: () => {}, onError })
  closers.push(close)
  const outbound = createOutbound({ allow: ['127.0.0.1'] })
  const open = (ahead: number) => createWebhooks({ ...createBase({ store, now: () => Date.now() + ahead, box, recorder, onError }), feed: events, outbound, onWarning: console.error })
  return {
    key: key.toString('hex'),
    open,
    async happen (count: number) {
      await Promise.all(Array.from({ length: count }, (_, number) => recorder.insert({ type: 'user.updated', id: `u${number}` })))
      await events.flush()
    }
  }
}

async function inFolder<T> (work: (database: string, closers: (() => unknown)[]) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'identity-webhooks-'))
  const closers: (() => unknown)[] = []
  try {
    return await work(`sqlite:${join(directory, 'identity.db')}`, closers)
  } finally {
    for (const close of closers.reverse()) await close()
    rmSync(directory, { recursive: true })
  }
}

/** Two processes deliver to three webhooks. In each round one of them, or both, are killed during deliveries and replaced. */
export async function killDeliverers (kills: number, perKill: number) {
  return await inFolder(async (database, closers) => {
    const receiver = await startReceiver(closers)
    const { key, open, happen } = await openParts(database, closers)
    const webhooks = open(0)
    for (let number = 0; number < 3; number++) await webhooks.create({ data: { name: `${number}`, url: `${receiver.url}/${number}`, types: ['user.updated'] } })
    const begin = async (round: number) => {
      const child = spawn(process.execPath, ['--no-warnings', CHILD, database, String(round * BEYOND_LEASE), key], { stdio: ['ignore', 'pipe', 'inherit'] })
      await once(child.stdout, 'data')
      return child
    }
    const children: ChildProcess[] = [await begin(1), await begin(1)]
    for (let round = 0; round < kills; round++) {
      const before = receiver.getTotal()
      await happen(perKill)
      // During the deliveries, at another place in each round.
      await receiver.until(before + 1 + (round * 37) % (perKill * 2))
      for (const [index, child] of children.entries()) {
        // Mostly one of them, sometimes both.
        if (index !== round % 2 && round % 3 !== 0) continue
        const ended = once(child, 'exit')
        child.kill('SIGKILL')
        await ended
        children[index] = await begin(round + 2)
      }
    }
    for (const child of children) {
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    }
    const last = open((kills + 3) * BEYOND_LEASE)
    await last.flush()
    await last.close()
    const expected = 3 * kills * perKill
    return { kills, expected, lost: expected - receiver.copies.size, copies: receiver.getTotal() - receiver.copies.size }
  })
}

/** A store with webhooks, and a function that starts a process that delivers to them. */
async function openDeliverer (webhookCount: number, delay: number, database: string, closers: (() => unknown)[]) {
  const receiver = await startReceiver(closers, delay)
  const { key, open, happen } = await openParts(database, closers)
  const webhooks = open(0)
  for (let number = 0; number < webhookCount; number++) await webhooks.create({ data: { name: `${number}`, url: `${receiver.url}/${number}`, types: ['user.updated'] } })
  await webhooks.close()
  // As `npm start` does.
  const start = (mode: 'drain' | 'steady') => spawn(process.execPath, ['--no-warnings', '--max-semi-space-size=8', CHILD, database, '0', key, mode], { stdio: ['pipe', 'pipe', 'inherit'] })
  const isComplete = (deliveries: number) => receiver.copies.size === deliveries && receiver.getTotal() === deliveries
  return { receiver, happen, start, isComplete }
}

/** Deliveries per second of one process to local receivers. */
export async function measureRate (webhookCount: number, eventCount: number, delay = 0) {
  return await inFolder(async (database, closers) => {
    const { happen, start, isComplete } = await openDeliverer(webhookCount, delay, database, closers)
    for (let count = 0; count < eventCount; count += 500) await happen(Math.min(500, eventCount - count))
    const { seconds } = JSON.parse(await text(start('drain').stdout))
    const deliveries = webhookCount * eventCount
    return { deliveries, isComplete: isComplete(deliveries), rate: Math.round(deliveries / seconds) }
  })
}

/** The growth of one process's memory during a steady rate of deliveries to local receivers. */
export async function measureMemory (webhookCount: number, eventsPerSecond: number, seconds: number, delay = 0) {
  return await inFolder(async (database, closers) => {
    const { receiver, happen, start, isComplete } = await openDeliverer(webhookCount, delay, database, closers)
    const child = start('steady')
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
    await lines.next()
    const begin = performance.now()
    let count = 0
    while (count < eventsPerSecond * seconds) {
      const due = Math.min(seconds, (performance.now() - begin) / 1_000) * eventsPerSecond - count
      if (due >= 1) {
        await happen(Math.floor(due))
        count += Math.floor(due)
      }
      await sleep(20)
    }
    const deliveries = webhookCount * count
    await receiver.until(deliveries)
    const rate = deliveries / (performance.now() - begin) * 1_000
    child.stdin.end()
    const { mebibytes } = JSON.parse(String((await lines.next()).value))
    return { deliveries, isComplete: isComplete(deliveries), rate: Math.round(rate), mebibytes: Math.round(mebibytes) }
  })
}

/** No delivery is lost in 50 kills. 1,000 deliveries per second to local receivers take less than 32 MiB, and one process makes more. */
export async function run (kills = 50): Promise<string | false> {
  const killed = await killDeliverers(kills, 100)
  const fastest = await measureRate(10, 2_000)
  const steady = await measureMemory(10, 100, 30)
  const isRight = killed.lost === 0 && fastest.isComplete && fastest.rate >= 1_000 && steady.isComplete && steady.mebibytes <= 32
  if (!isRight) console.log(JSON.stringify({ killed, fastest, steady }))
  return isRight && `webhooks: ${killed.expected} messages beside ${kills} kills, none lost, ${killed.copies} copies; ${fastest.rate} deliveries a second; ${steady.rate} a second in ${steady.mebibytes} MiB`
}
