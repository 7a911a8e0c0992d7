import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { type AddressInfo, type Socket, connect, createServer } from 'node:net'
import { MessageChannel, Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { type GivenBackOptions, findKept, watchSizes } from '../helpers/given-back.ts'

const TIMES = 3

/** A call that keeps something, what it keeps, and how the test ends it. */
interface Row extends GivenBackOptions {
  keep: () => unknown
  /** The kinds, and by how many each call makes them grow. */
  kinds: Record<string, number>
  end?: () => unknown
}

async function listenForSockets (t: Test): Promise<() => Promise<Socket>> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return async () => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    await once(socket, 'connect')
    return socket
  }
}

/** Descriptors are counted where the system shows them. */
const ofDescriptors = (kind: string, count: number): Record<string, number> => process.platform === 'linux' ? { [`descriptors of ${kind}`]: count } : {}
const { signal } = new AbortController()
const listener = () => {}

const rows: Record<string, (t: Test) => Promise<Row> | Row> = {
  'a listener of a signal': () => ({
    signals: { 'the signal': signal }, keep: () => signal.addEventListener('abort', () => {}), kinds: { 'listeners of the signal': 1 }
  }),
  'a timer': () => {
    const timers: NodeJS.Timeout[] = []
    return { keep: () => timers.push(setTimeout(() => {}, 100_000)), kinds: { Timeout: 1 }, end: () => timers.forEach(clearTimeout) }
  },
  'a timer that would end by itself before the last count': () => {
    const timers: NodeJS.Timeout[] = []
    return { limit: 600, keep: () => timers.push(setTimeout(() => {}, 500)), kinds: { Timeout: 1 }, end: () => timers.forEach(clearTimeout) }
  },
  'an interval that does not keep the process alive': () => {
    const timers: NodeJS.Timeout[] = []
    return { keep: () => timers.push(setInterval(() => {}, 100_000).unref()), kinds: { Timeout: 1 }, end: () => timers.forEach(clearInterval) }
  },
  'an entry of a map': () => {
    const map = new Map<object, true>()
    return { sizes: { 'the map': map }, keep: () => map.set({}, true), kinds: { 'size of the map': 1 } }
  },
  'an entry of a list': () => {
    const list: unknown[] = []
    return { sizes: { 'the list': list }, keep: () => list.push(1), kinds: { 'size of the list': 1 } }
  },
  'what a function counts': () => {
    let kept = 0
    return { sizes: { 'the count': () => kept }, keep: () => ++kept, kinds: { 'size of the count': 1 } }
  },
  'a listener of the process': () => ({
    keep: () => process.on('SIGUSR2', () => {}), kinds: { 'listeners of the process for SIGUSR2': 1 }, end: () => process.removeAllListeners('SIGUSR2')
  }),
  'a composite signal with a listener': () => ({
    keep: () => AbortSignal.any([signal]).addEventListener('abort', listener), kinds: { 'composite signals': 1 }
  }),
  'a port': () => {
    const channels: MessageChannel[] = []
    return { keep: () => channels.push(new MessageChannel()), kinds: { MESSAGEPORT: 2 }, end: () => channels.forEach(({ port1 }) => port1.close()) }
  },
  'a thread': () => {
    const threads: Worker[] = []
    return {
      keep: () => {
        const thread = new Worker('setInterval(() => {}, 100_000)', { eval: true, stdin: false })
        threads.push(thread)
        return once(thread, 'online')
      },
      kinds: { WORKER: 1 },
      end: () => Promise.all(threads.map((thread) => thread.terminate()))
    }
  },
  'a descriptor': () => {
    const descriptors: number[] = []
    return { keep: () => descriptors.push(openSync('/dev/null', 'r')), kinds: ofDescriptors('null', 1), end: () => descriptors.forEach((one) => closeSync(one)) }
  },
  'a socket': async (t) => {
    const open = await listenForSockets(t)
    const sockets: Socket[] = []
    return {
      keep: async () => sockets.push(await open()),
      // With the other side of it.
      kinds: { TCPWRAP: 2, ...ofDescriptors('socket', 2) },
      end: () => sockets.forEach((socket) => socket.destroy())
    }
  }
}

/** The growth of each kind. */
const toGrowth = (found: string[]) => Object.fromEntries(found.map((text) => {
  const [, kind = text, former, now] = /^(.*): from (\d+) to (\d+)$/.exec(text) ?? []
  return [kind, Number(now) - Number(former)]
}))

for (const [what, make] of Object.entries(rows)) {
  t.test(`${what} that is kept is named, from how many to how many`, async (t) => {
    const { keep, kinds, end = () => {}, ...holders } = await make(t)
    t.teardown(end)
    const growth = toGrowth(await findKept(async () => { await keep() }, { times: TIMES, limit: 50, ...holders }))
    for (const [kind, each] of Object.entries(kinds)) t.equal(growth[kind], each * TIMES, kind)
  })
}

t.test('what is given back is not named, also when it closes some turns later', async (t) => {
  const open = await listenForSockets(t)
  t.strictSame(await findKept(async () => {
    const own = new AbortController()
    AbortSignal.any([own.signal, signal]).addEventListener('abort', listener)
    const without = AbortSignal.any([new AbortController().signal, signal])
    without.addEventListener('abort', listener)
    without.removeEventListener('abort', listener)
    const socket = await open()
    const timer = setTimeout(() => {}, 100_000)
    setTimeout(() => {
      clearTimeout(timer)
      socket.destroy()
      own.abort()
    }, 20)
  }, { signals: { 'the signal': signal } }), [])
})

t.test('maps and sets that are made while something opens are noted, also those that it keeps to itself', async (t) => {
  const { opened: { note }, sizes } = await watchSizes(async () => {
    const hidden = new Set<object>()
    const names = new Map<string, boolean>()
    return {
      note () {
        hidden.add({})
        names.set('same', true)
      }
    }
  })
  t.equal(globalThis.Set, Set)
  t.match(await findKept(async () => note(), { times: TIMES, limit: 50, sizes }), [/^size of given-back\/helper\.test\.ts:\d+: from 1 to 4$/])
})
