import { join } from 'node:path'
import t from 'tap'
import { readPage } from '../../../lib/lists/cursor.ts'
import type { Document } from '../../../lib/store/port.ts'
import { openStore } from '../../../lib/store/index.ts'

interface Thing extends Document { text: string }

for (const [label, length, kept] of [['small', 10, true], ['large', 100_000, false]] as const) {
  t.test(`a page of ${label} records ${kept ? 'stays in memory' : 'is read again, batch by batch'}`, async (t) => {
    const store = await openStore(`sqlite:${join(t.testdir(), 'page.db')}`, { collections: [{ name: 'things', keys: {} }], now: Date.now })
    t.teardown(() => store.close())
    const things = store.collection<Thing>('things')
    const ids = Array.from({ length: 30 }, (_, number) => `t${String(number).padStart(2, '0')}`)
    await Promise.all(ids.map((id) => things.insert({ id, text: 'x'.repeat(length) })))
    const read = async (limit: number, removed?: string) => {
      const { batches, after } = await readPage(things, { limit }, (thing) => thing, (open) => open())
      if (removed !== undefined) await things.delete(removed)
      const parts: string[][] = []
      for await (const batch of batches) parts.push(batch.map(({ id, text }) => `${id}${text.length === length ? '' : '?'}`))
      return { parts, after }
    }
    const whole = await read(30)
    t.strictSame(whole.parts.flat(), ids)
    t.equal(whole.parts.length === 1, kept)
    t.equal(whole.after, undefined, 'the last page')
    const page = await read(20, 't11')
    t.strictSame(page.parts.flat(), ids.slice(0, 20).filter((id) => kept || id !== 't11'))
    t.type(page.after, 'string')
  })
}
