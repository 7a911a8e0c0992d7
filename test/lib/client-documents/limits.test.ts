import t from 'tap'
import { DocumentError } from '../../../lib/client-documents/error.ts'
import { createLimits } from '../../../lib/client-documents/limits.ts'
import { createPresent } from '../../../lib/client-documents/present.ts'
import { Wanted } from '../../../lib/client-documents/wanted.ts'
import { createCounter } from '../../../lib/throttling/counter.ts'

const AGENT = new URL('https://agent.example/client.json')
const OTHER = new URL('https://other.example/client.json')
const missing = () => new DocumentError('status', 'the host must answer 200', { value: '404', state: 'gone' })

/** Limits whose clock and timers stand still until `advance`. */
function open () {
  let time = 0
  const due = new Set<{ at: number, run: () => void }>()
  const now = () => time
  const timers = {
    now,
    set (run: () => void, delay: number) {
      const timer = { at: time + delay, run }
      due.add(timer)
      return timer as never
    },
    clear: (timer: unknown) => { due.delete(timer as never) }
  }
  const limits = createLimits({ counter: createCounter(now), now, timers })
  const settle = async () => { for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate) }
  let running = 0
  return {
    limits,
    timers,
    now,
    settle,
    get running () { return running },
    /** Wants a document that nobody else wants. */
    fetch: async (address: string, url = AGENT, work: () => Promise<string> = async () => 'done') =>
      await limits.first(url, address, new Wanted<string>((error) => error instanceof DocumentError), async () => {
        running++
        return await work().finally(() => { running-- })
      }),
    again: async (address: string, url = AGENT, work: () => Promise<string> = async () => 'read again') =>
      await limits.again(url, address, new Wanted<string>(() => true), async () => {
        running++
        return await work().finally(() => { running-- })
      }),
    async advance (milliseconds: number) {
      const end = time + milliseconds
      for (;;) {
        const [next] = [...due].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)
        if (next === undefined) break
        time = Math.max(time, next.at)
        due.delete(next)
        next.run()
        await settle()
      }
      time = end
    }
  }
}

const rate = { name: 'DocumentError', rule: 'rate' }
const busy = { name: 'DocumentError', rule: 'busy', retryAfter: 5 }

t.test('ten first fetches a minute for an address, which is a /64 of IPv6, and ten times as many for a /48', async (t) => {
  const { fetch, advance } = open()
  const toUrl = (index: number) => new URL(`https://agent-${index}.example/client.json`)
  for (let count = 0; count < 10; count++) await fetch(`2001:db8:1:2::${count}`, toUrl(count))
  await t.rejects(fetch('2001:db8:1:2:ffff::1'), { ...rate, retryAfter: 60 })
  for (let count = 0; count < 90; count++) await fetch(`2001:db8:1:${100 + count}::1`, toUrl(count))
  await t.rejects(fetch('2001:db8:1:9999::1'), { ...rate, message: /for one address/ })
  t.equal(await fetch('2001:db8:2:1::1'), 'done', 'another /48')
  await advance(60_000)
  t.equal(await fetch('2001:db8:1:2::1'), 'done')
})

t.test('of one host, five first fetches a minute may fail for an address: strangers use up nobody else\'s', async (t) => {
  const { fetch, advance } = open()
  const fail = async () => { throw missing() }
  for (let network = 0; network < 8; network++) {
    for (let count = 0; count < 5; count++) await t.rejects(fetch(`192.0.2.${network}`, AGENT, fail), { name: 'DocumentError', rule: 'status' })
    // A whole minute of the host is used up by six of them.
    await advance(7_000)
    await t.rejects(fetch(`192.0.2.${network}`, AGENT, fail), { ...rate, message: /of one host that cannot be used/ })
  }
  t.equal(await fetch('198.51.100.1'), 'done')
  t.equal(await fetch('192.0.2.7', OTHER), 'done', 'other hosts go on')
  for (let count = 0; count < 8; count++) t.equal(await fetch('198.51.100.2'), 'done', 'what succeeds is not counted')
  const down = async () => { throw new DocumentError('busy', 'the service is closing', { retryAfter: 5, state: 'down' }) }
  for (let count = 0; count < 6; count++) await t.rejects(fetch('198.51.100.3', AGENT, down), { message: 'the service is closing' }, 'nor what says nothing of the document')
  await advance(60_000)
  t.equal(await fetch('192.0.2.7'), 'done')
})

t.test('a host gets thirty first fetches, and then one each two seconds, for which networks take turns', async (t) => {
  const { fetch, advance, settle } = open()
  for (let count = 0; count < 30; count++) await fetch(`192.0.2.${count % 3}`)
  const order: string[] = []
  const ask = (address: string, name = address) => fetch(address).then(() => order.push(name), () => order.push('refused'))
  const all = [ask('203.0.113.1'), ask('203.0.113.1'), ask('203.0.113.1'), ask('2001:db8:1:1::1'), ask('2001:db8:1:2::1')]
  await settle()
  all.push(ask('198.51.100.1', 'a person'))
  t.equal(await fetch('192.0.2.9', OTHER), 'done', 'another host is free')
  await advance(1_900)
  t.strictSame(order, [])
  await advance(4_200)
  t.strictSame(order, ['203.0.113.1', '2001:db8:1:1::1', 'a person'])
  await advance(6_000)
  await Promise.all(all)
  t.strictSame(order.length, 6)
  await advance(60_000)
  for (let count = 0; count < 5; count++) t.equal(await fetch('198.51.100.2'), 'done')
})

t.test('one network that fills the places of all hosts keeps nobody out, and later fetches have places of their own', async (t) => {
  for (const networks of [1, 8]) {
    const opened = open()
    const { fetch, again, settle } = opened
    const { promise, resolve } = Promise.withResolvers<string>()
    const hang = async () => await promise
    // 44 connections of one /48, or of eight, whose hosts hang.
    const all = Array.from({ length: 88 }, (_, index) => fetch(`2001:db8:${index % networks}:${index}::1`, new URL(`https://host-${index}.example/a`), hang).catch((error: DocumentError) => error.rule))
    await settle()
    t.equal(opened.running, 8, 'eight at once')
    const person = fetch('198.51.100.1')
    t.equal(await again('198.51.100.1'), 'read again')
    await settle()
    resolve('done')
    t.equal(await person, 'done', `${networks} networks`)
    t.ok((await Promise.all(all)).filter((result) => result === 'busy').length >= 16, 'more than 64 do not wait')
  }
})

t.test('four of one host at once, and 32 wait for it; a network gives its place to another one', async (t) => {
  const opened = open()
  const { fetch, again, settle } = opened
  const { promise, resolve } = Promise.withResolvers<string>()
  const hang = async () => await promise
  const all = Array.from({ length: 40 }, () => again('192.0.2.1', AGENT, hang).catch((error: DocumentError) => error.rule))
  await settle()
  t.equal(opened.running, 4)
  await t.rejects(again('192.0.2.1', AGENT, hang), busy)
  const person = again('198.51.100.1')
  t.equal(await fetch('198.51.100.1', OTHER), 'done')
  resolve('done')
  t.equal(await person, 'read again')
  t.strictSame((await Promise.all(all)).filter((result) => result === 'busy').length, 5)
  t.equal(await fetch('198.51.100.2'), 'done')
})

/** Wants a document of as many hosts that nobody else names: in fetches that are admitted, or in those of one address, most of which are refused. */
async function makeUp ({ fetch }: ReturnType<typeof open>, count: number, { addresses = 200 } = {}): Promise<number> {
  let refused = 0
  for (let index = 0; index < count; index++) await fetch(`10.0.${index % addresses}.1`, new URL(`https://made-up-${index}.example/a`)).catch(() => { refused++ })
  return refused
}

for (const [what, addresses, isRefused] of [['that are fetched', 200, false], ['that are refused, of one address', 1, true]] as const) {
  t.test(`1,200 hosts that strangers make up, ${what}: another host keeps its pace, its places and its turns`, async (t) => {
    const opened = open()
    const { fetch, settle, advance } = opened
    const [gate, ends] = [Promise.withResolvers<string>(), [] as Promise<unknown>[]]
    for (let count = 0; count < 26; count++) await fetch(`192.0.2.${count % 3}`)
    for (let count = 0; count < 4; count++) ends.push(fetch(`192.0.2.${10 + count}`, AGENT, async () => await gate.promise))
    await settle()
    const order: string[] = []
    const ask = (address: string) => ends.push(fetch(address, AGENT, async () => await gate.promise).then(() => order.push(address)))
    ask('192.0.2.20')
    await settle()
    t.equal(await makeUp(opened, 1_200, { addresses }) > 0, isRefused)
    ask('198.51.100.1')
    await settle()
    t.equal(opened.running, 4, 'four at once')
    await advance(2_000)
    await advance(2_000)
    t.equal(opened.running, 4, 'and two that have had their turn at the pace of the host')
    gate.resolve('done')
    await Promise.all(ends)
    t.strictSame(order, ['192.0.2.20', '198.51.100.1'])
    let done = false
    const next = fetch('198.51.100.2').then(() => { done = true })
    await makeUp(opened, 1_200, { addresses })
    await settle()
    t.notOk(done, 'the host still has its pace')
    await advance(2_000)
    await next
  })
}

t.test('of more hosts than are remembered, those that have spent the least are forgotten', async (t) => {
  const opened = open()
  const { fetch, settle, advance } = opened
  for (let count = 0; count < 30; count++) await fetch(`192.0.2.${count % 3}`)
  for (let count = 0; count < 20; count++) await fetch(`192.0.2.${10 + count % 3}`, OTHER)
  for (let round = 0; round < 3; round++) await makeUp(opened, 1_200, { addresses: 400 })
  let done = 0
  const rest = Array.from({ length: 11 }, async (_, index) => { await fetch(`198.51.100.${index}`, OTHER); done++ })
  await settle()
  t.equal(done, 10, 'what the other one has left')
  let isDone = false
  const next = fetch('198.51.100.20').then(() => { isDone = true })
  await settle()
  t.notOk(isDone, 'nor has the first one anything left')
  await advance(2_000)
  await Promise.all([...rest, next])
})

t.test('what several want is fetched once, and 500 people behind one address have one turn', async (t) => {
  const { limits, settle } = open()
  const wanted = new Wanted<string>((error) => error instanceof DocumentError && error.retryAfter === undefined)
  let fetches = 0
  const { promise, resolve } = Promise.withResolvers<string>()
  const ask = (address: string) => wanted.wait(address, async () => await limits.first(AGENT, address, wanted, async () => {
    fetches++
    return await promise
  }))
  const all = Array.from({ length: 500 }, () => ask('192.0.2.1'))
  await settle()
  const others = Array.from({ length: 20 }, (_, index) => ask(`198.51.100.${index}`))
  await settle()
  resolve('done')
  t.equal((await Promise.all(others)).filter((result) => result === 'done').length, 20)
  t.equal((await Promise.all(all)).filter((result) => result === 'done').length, 500)
  t.equal(fetches, 1)
})

const fail = (rule: 'address' | 'unreachable' | 'status' | 'type' | 'client_id', value = '') => new DocumentError(rule, 'is refused', { value })

t.test('of a host that a stranger names, a failure takes as long whatever the host is, and so does the wait for its place', async (t) => {
  /** What the host is, and the milliseconds after which the fetch tells it. */
  const hosts: [after: number, error: DocumentError][] = [
    [0, fail('address')], [1, fail('unreachable', 'ECONNREFUSED')], [5, fail('unreachable', 'ENOTFOUND')], [40, fail('unreachable', 'EPROTO')], [80, fail('status', '401')],
    [120, fail('type', 'text/html')], [900, fail('client_id')], [2_500, fail('unreachable', 'ETIMEDOUT')]
  ]
  const toTimes = async (isNamed: boolean, [after, error]: (typeof hosts)[number]): Promise<number[]> => {
    const { limits, now, timers, settle, advance } = open()
    const getDocument = async () => {
      await new Promise<void>((resolve) => timers.set(resolve, after))
      throw error
    }
    const store = { collection: () => ({ get: async () => null }) } as never
    const present = createPresent({ store, now, fetch: { getDocument }, limits, isNamed: () => isNamed, timers, onFailed: () => {} })
    const read = async (path: string) => {
      const from = now()
      return await present.read(new URL(path, AGENT), '192.0.2.1').then(() => -1, () => now() - from)
    }
    // Four at once, and two that wait for a place.
    const times = Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map(read))
    await settle()
    await advance(20_000)
    return [...await times, await read('a')]
  }
  for (const host of hosts) {
    t.strictSame(await toTimes(false, host), [3_000, 3_000, 3_000, 3_000, 6_000, 6_000, 0], host[1].detail)
    t.strictSame(await toTimes(true, host), [...Array.from({ length: 4 }, () => host[0]), 2 * host[0], 2 * host[0], 0], 'named by the operator')
  }
})
