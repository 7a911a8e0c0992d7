import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { startSmtp } from '../helpers/smtp.ts'

const CHILD = fileURLToPath(new URL('../fixtures/sending-child.ts', import.meta.url))

/** A process that accepts and sends mails. */
async function startSender (database: string, url: string) {
  const child = spawn(process.execPath, ['--no-warnings', CHILD, database, url], { stdio: ['pipe', 'pipe', 'inherit'] })
  const accepted: string[] = []
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
    /** Resolves when it was told of so many accepted mails. */
    accept: async (count: number) => await until(() => accepted.length >= count),
    async look () {
      const before = rests
      child.stdin.write('look\n')
      await until(() => rests > before)
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
  kills: number
  /** The most mails that were in flight at one kill. */
  inFlight: number
}

/**
 * Processes on one database accept and send mails; some are killed in the middle of it and replaced. In the end one more, whose
 * clock is past every lease, sends what they have left.
 */
export async function deliver (database: string, { processes, mails, kills }: { processes: number, mails: number, kills: number }): Promise<DeliveryResult> {
  const closers: (() => unknown)[] = []
  const server = await startSmtp({ teardown: (close) => { closers.push(close) } }, { authOptional: true, hideSTARTTLS: true })
  const url = `smtp://127.0.0.1:${server.port}`
  const senders = await Promise.all(Array.from({ length: processes }, () => startSender(database, url)))
  const accepted = new Set<string>()
  const waiting = Array.from({ length: mails }, (_, number) => `m${number}@example.com`)
  let killed = 0
  const give = (sender: typeof senders[number], count: number) => {
    for (const address of waiting.splice(0, count)) sender.write(`to ${address}`)
  }
  while (killed < kills) {
    const place = killed % processes
    const sender = senders[place]!
    give(sender, Math.ceil(mails / kills))
    // In the middle of accepting and of sending: where exactly changes from round to round.
    await sender.accept(1 + killed % 5)
    await sender.end('SIGKILL')
    for (const address of sender.accepted) accepted.add(address)
    killed++
    senders[place] = await startSender(database, url)
  }
  for (let place = 0; waiting.length > 0; place = (place + 1) % processes) give(senders[place]!, Math.ceil(mails / processes / 4))
  for (const sender of senders) await sender.look()
  for (const sender of senders) {
    await sender.end()
    for (const address of sender.accepted) accepted.add(address)
  }
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
    kills: killed,
    inFlight: 4
  }
}
