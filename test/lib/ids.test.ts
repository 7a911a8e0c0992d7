import t from 'tap'
import { generateId, randomText } from '../../lib/ids.ts'

const NOW = Date.UTC(2026, 10, 21)

t.test('an id is a ULID of its time and eight random characters (service.md, 2)', (t) => {
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
