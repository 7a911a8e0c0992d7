import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { DeliveryRecord } from '../../lib/mail/delivery.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { startSmtp } from '../helpers/smtp.ts'

const CHILD = fileURLToPath(new URL('../fixtures/sending-child.ts', import.meta.url))

/** A process that accepts and sends mails. */
async function startSender (database: string, url: string) {
  const child = spawn(process.execPath, ['--no-warnings', CHILD, database, url], { stdio: ['pipe', 'pipe', 'inherit'] })
  const accepted: string[] = []
  let given = 0
  let looks = 0
  let rests = 0
  const waiting = new Set<() => void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line === 'rest') rests++
    else if (line !== 'ready') accepted.push(line)
    for (const check of waiting) check()
  })
  await once(child.stdout, 'data')
  const until = async (isDone: () => boolean) => {
    while (!isDone()) await new Promise<void>((resolve) => { const check = () => { waiting.delete(check); resolve() }; waiting.add(check) })
  }
  return {
    accepted,
    write: (line: string) => { child.stdin.write(`${line}\n`) },
    give (address: string) {
      given++
      child.stdin.write(`to ${address}\n`)
    },
    /** Resolves when the process has accepted all mails that it was given. */
    acceptAll: async () => await until(() => accepted.length >= given),
    /** Resolves when the process has accepted `count` mails. */
    accept: async (count: number) => await until(() => accepted.length >= count),
    /** Makes the process send the due mails of all processes. Resolves when it finds no more. */
    async look () {
      const own = ++looks
      child.stdin.write('look\n')
      await until(() => rests >= own)
    },
    async end (signal?: 'SIGKILL') {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      if (signal === undefined) child.stdin.end()
      else child.kill(signal)
      await ended
    }
  }
}

export interface DeliveryResult {
  mails: number
  sent: number
  /** Mails that were accepted and did not arrive. */
  lost: number
  /** Copies beyond the first, and how many Message-IDs copies of one mail have at most. */
  duplicates: number
  ids: number
  /** The most copies of one mail. */
  copies: number
  kills: number
  /** Mails that were in flight at a kill, all in all: claimed, and in the store until their lease is over. */
  inFlight: number
}

/** Counts the mails that processes have claimed and not finished. */
async function countClaimed (database: string): Promise<number> {
  const store = await openStore(database, { collections: COLLECTIONS, now: Date.now })
  let claimed = 0
  for await (const batch of store.collection<DeliveryRecord>('deliveries').stream()) claimed += batch.filter(({ attempts }) => attempts > 0).length
  await store.close()
  return claimed
}

/**
 * Processes on one database accept mails, and send the mails that any of them has accepted. Some are killed meanwhile and
 * replaced. At the end one more process, whose clock is past every lease, sends the remaining mails.
 */
export async function deliver (database: string, { processes, mails, kills }: { processes: number, mails: number, kills: number }): Promise<DeliveryResult> {
  const closers: (() => unknown)[] = []
  const server = await startSmtp({ teardown: (close) => { closers.push(close) } }, { authOptional: true, hideSTARTTLS: true })
  const url = `smtp://127.0.0.1:${server.port}`
  const senders = await Promise.all(Array.from({ length: processes }, () => startSender(database, url)))
  const accepted = new Set<string>()
  let killed = 0
  let given = 0
  const give = (sender: typeof senders[number], count: number) => {
    for (let one = 0; one < count; one++) sender.give(`m${given++}@example.com`)
  }
  while (killed < kills) {
    const place = killed % processes
    const sender = senders[place]!
    give(sender, Math.ceil(mails / kills))
    // All of them claim the same mails.
    for (const one of senders) one.look().catch(() => {})
    // In the middle of accepting and of sending: where exactly changes from round to round.
    await sender.accept(1 + killed % Math.ceil(mails / kills))
    await sender.end('SIGKILL')
    for (const address of sender.accepted) accepted.add(address)
    killed++
    senders[place] = await startSender(database, url)
  }
  // The mails that a killed process had not accepted are given to the others.
  const missing = mails - accepted.size - senders.reduce((sum, sender) => sum + sender.accepted.length, 0)
  for (let place = 0; place < processes; place++) give(senders[place]!, Math.floor((missing + place) / processes))
  await Promise.all(senders.map((sender) => sender.acceptAll()))
  await Promise.all(senders.map((sender) => sender.look()))
  for (const sender of senders) {
    await sender.end()
    for (const address of sender.accepted) accepted.add(address)
  }
  const inFlight = await countClaimed(database)
  const last = await startSender(database, url)
  last.write(`skew ${30 * 60_000}`)
  await last.look()
  await last.end()
  const copies = Map.groupBy(server.received, ({ to }) => to)
  for (const close of closers) await close()
  return {
    mails: accepted.size,
    sent: server.received.length,
    lost: [...accepted].filter((address) => !copies.has(address)).length,
    duplicates: [...copies.values()].reduce((sum, { length }) => sum + length - 1, 0),
    ids: Math.max(...[...copies.values()].map((mails) => new Set(mails.map(({ id }) => id)).size)),
    copies: Math.max(...[...copies.values()].map(({ length }) => length)),
    kills: killed,
    inFlight
  }
}
