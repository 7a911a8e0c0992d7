import { Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { remainingStallTime, renderList } from '../../../lib/lists/listing.ts'
import { createTimers } from '../../helpers/timers.ts'

t.test('a reader has the stall time-out for each batch, and less below the lowest rate', (t) => {
  const KIB = 1024
  for (const [sent, waited, left] of [
    [1, 0, 60_000],
    [1, 59_000, 1_000],
    [60 * KIB, 59_000, 1_000],
    [90 * KIB, 59_000, 31_000],
    [600 * KIB, 59_000, 60_000],
    [600 * KIB, 599_000, 1_000],
    [600 * KIB, 600_000, 0]
  ] as const) t.equal(remainingStallTime(sent, waited, 60_000), left, `${sent} bytes in ${waited} ms`)
  t.end()
})

t.test('a client that reads too slowly is disconnected, and the source is closed', async (t) => {
  const timers = createTimers()
  let closed = false
  async function * count (): AsyncGenerator<number[]> {
    try {
      for (let number = 0; number < 500; number++) yield [number]
    } finally {
      closed = true
    }
  }
  const stream = await renderList({ batches: count() }, { format: 'ndjson', stallTimeout: 100, timers })
  t.ok(stream instanceof Readable)
  let sips = 0
  await t.rejects(async () => {
    for await (const sip of stream as Readable) {
      sips += sip.length > 0 ? 1 : 0
      // By then the next batch waits for its reader.
      await turn()
      await turn()
      timers.advance(5)
    }
  }, { name: 'StalledError' })
  t.ok(sips > 10 && sips < 100, `${sips} sips`)
  t.equal(closed, true)
})

t.test('a client that reads nothing is disconnected after the stall time-out', async (t) => {
  const timers = createTimers()
  async function * count (): AsyncGenerator<number[]> {
    for (let number = 0; ; number++) yield [number]
  }
  const stream = await renderList({ batches: count() }, { format: 'array', stallTimeout: 100, timers }) as Readable
  stream.once('readable', () => {
    timers.advance(99)
    t.equal(stream.destroyed, false)
    timers.advance(1)
    t.equal(stream.destroyed, true)
  })
  await t.rejects(new Promise((_resolve, reject) => { stream.once('error', reject) }), { name: 'StalledError' })
})

t.test('a slow store is not a slow reader', async (t) => {
  const timers = createTimers()
  async function * crawl (): AsyncGenerator<number[]> {
    for (let number = 0; number < 6; number++) {
      yield [number]
      timers.advance(1_000)
    }
  }
  const stream = await renderList({ batches: crawl() }, { format: 'array', stallTimeout: 100, timers }) as Readable
  t.equal((await stream.toArray()).join(''), '[0,1,2,3,4,5]')
})

t.test('a list is as it would be without its empty batches, wherever they are', async (t) => {
  async function * give (batches: number[][]): AsyncGenerator<number[]> {
    yield * batches
  }
  for (const format of ['object', 'array', 'ndjson'] as const) {
    const read = async (...batches: number[][]) => {
      const list = await renderList({ batches: give(batches) }, { format, stallTimeout: 1_000 })
      return typeof list === 'string' ? list : (await Array.fromAsync(list)).join('')
    }
    const whole = await read([1], [2], [3])
    t.equal(await read([1], [2], [3], []), whole, `${format}: at the end`)
    t.equal(await read([], [1], [2], [3]), whole, 'at the beginning')
    t.equal(await read([1], [], [], [2], [3]), whole, 'between')
    t.equal(await read([1], []), await read([1]), 'after the only one')
    t.equal(await read([], []), await read(), 'alone')
    if (format === 'array') t.strictSame(JSON.parse(await read([], [1], [], [2], [])), [1, 2])
  }
})
