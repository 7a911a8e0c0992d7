import * as crypto from 'node:crypto'
import t from 'tap'
import * as ids from '../../lib/ids.ts'
import { importMocked } from '../helpers/import-mocked.ts'

const { generateId, randomText } = ids

const NOW = Date.UTC(2026, 10, 21)

t.test('an id is a ULID of its time and eight random characters', (t) => {
  const id = generateId(NOW)
  t.match(id, /^[0-9A-HJKMNP-TV-Z]{26}[0-9A-Za-z]{8}$/)
  t.equal(id.length, 34)
  t.equal(generateId(NOW).slice(0, 10), id.slice(0, 10))
  t.ok(generateId(NOW + 1) > id, 'a later one sorts after it')
  t.end()
})

t.test('each random place of an id takes every character of its alphabet', (t) => {
  const ids = Array.from({ length: 4_000 }, () => generateId(NOW))
  t.equal(new Set(ids).size, ids.length)
  for (let place = 10; place < 34; place++) {
    // 4,000 draws miss one of 62 characters once in 10^26 runs.
    t.equal(new Set(ids.map((id) => id[place])).size, place < 26 ? 32 : 62, `place ${place}`)
  }
  t.end()
})

t.test('random text has the length asked for', (t) => {
  for (const length of [0, 1, 16]) t.match(randomText(length), new RegExp(`^[0-9A-Za-z]{${length}}$`))
  t.end()
})

t.test('no character is favoured: bytes that would favour some are drawn again', async (t) => {
  // Before each of 248, which are four for each character, one of the eight that have to be drawn again.
  const randomFillSync = (pool: Uint8Array) => pool.forEach((_, index) => { pool[index] = index % 2 === 0 ? 248 + index % 8 : (index >> 1) % 248 })
  const forced = await importMocked<typeof ids>(t, new URL('../../lib/ids.ts', import.meta.url), { 'node:crypto': { ...crypto, randomFillSync } })
  const counts = new Map<string, number>()
  for (const character of forced.randomText(4 * 62)) counts.set(character, (counts.get(character) ?? 0) + 1)
  t.equal(counts.size, 62)
  t.strictSame(new Set(counts.values()), new Set([4]))
})

t.test('a byte is used once, and then erased', async (t) => {
  let filled = 0
  let pool: Uint8Array = new Uint8Array()
  const randomFillSync = (given: Uint8Array) => {
    pool = given.fill(++filled)
  }
  const forced = await importMocked<typeof ids>(t, new URL('../../lib/ids.ts', import.meta.url), { 'node:crypto': { ...crypto, randomFillSync } })
  t.equal(forced.randomText(1), '1')
  t.equal(pool[0], 0)
  t.equal(forced.randomText(pool.length), '1'.repeat(pool.length - 1) + '2')
  t.strictSame([filled, pool[0], pool[1]], [2, 0, 2])
})
