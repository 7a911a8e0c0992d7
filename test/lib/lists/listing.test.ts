import { setTimeout as sleep } from 'node:timers/promises'
import { Readable } from 'node:stream'
import t from 'tap'
import { patience, renderList } from '../../../lib/lists/listing.ts'

t.test('a reader has the stall time-out for each batch, and less once it falls below the pace', (t) => {
  const KIB = 1024
  for (const [sent, waited, left] of [
    [1, 0, 60_000],
    [1, 59_000, 1_000],
    [60 * KIB, 59_000, 1_000],
    [90 * KIB, 59_000, 31_000],
    [600 * KIB, 59_000, 60_000],
    [600 * KIB, 599_000, 1_000],
    [600 * KIB, 600_000, 0]
  ] as const) t.equal(patience(sent, waited, 60_000), left, `${sent} bytes in ${waited} ms`)
  t.end()
})

t.test('a reader that sips is broken off, and the batches are left', async (t) => {
  let left = false
  async function * count (): AsyncGenerator<number[]> {
    try {
      for (let number = 0; number < 500; number++) yield [number]
    } finally {
      left = true
    }
  }
  const stream = await renderList({ batches: count() }, { format: 'ndjson', stallTimeout: 100 })
  t.ok(stream instanceof Readable)
  let sips = 0
  await t.rejects(async () => {
    for await (const sip of stream as Readable) {
      sips += sip.length > 0 ? 1 : 0
      await sleep(5)
    }
  }, { name: 'StalledError' })
  t.ok(sips < 100, `${sips} sips`)
  t.equal(left, true)
})

t.test('the time a store takes is not the reader\'s', async (t) => {
  async function * crawl (): AsyncGenerator<number[]> {
    for (let number = 0; number < 6; number++) {
      yield [number]
      await sleep(30)
    }
  }
  const stream = await renderList({ batches: crawl() }, { format: 'array', stallTimeout: 100 }) as Readable
  t.equal((await stream.toArray()).join(''), '[0,1,2,3,4,5]')
})
