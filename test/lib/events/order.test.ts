import t from 'tap'
import { type Horizon, orderEvents } from '../../../lib/events/order.ts'
import type { Pending } from '../../../lib/events/pending.ts'
import { createUlids } from '../../../lib/ids.ts'

const BEGIN = 1_800_000_000_000

/** An event by the machine's clock, which began with BEGIN, unless `time` says what the clock showed. */
function make (ticks: number, { machine = 'here', time = ticks }: { machine?: string | undefined, time?: number } = {}): Pending {
  return {
    key: createUlids()(BEGIN + time),
    content: { type: 'user.updated', time: '', actor: { via: 'system' }, target: { kind: 'user', id: `${machine} ${ticks}` }, outcome: 'success' },
    ...(machine !== 'early' && { made: { machine, ticks: ticks * 1_000 } })
  }
}

/** A round that began to read `at` milliseconds after BEGIN. */
const read = (at: number, cut?: string): Horizon => ({ time: BEGIN + at, made: { machine: 'here', ticks: at * 1_000 }, cut })

function order (chains: Pending[][], horizon: Horizon): { texts: string[], isAll: boolean } {
  const { queued, isAll } = orderEvents(chains.map((pending) => ({ pending })), horizon)
  return { texts: queued.map(({ pending }) => pending.content.target.id), isAll }
}

t.test('events of all documents are in the order of their making', (t) => {
  const found = order([[make(1), make(4)], [make(2), make(3)], [make(0, { machine: 'there' })]], read(10))
  t.strictSame(found, { texts: ['there 0', 'here 1', 'here 2', 'here 3', 'here 4'], isAll: true })
  t.end()
})

t.test('microseconds decide within a millisecond', (t) => {
  const chains = Array.from({ length: 50 }, (_, index) => [make(5 + index / 1_000, { time: 5 })])
  t.strictSame(order(chains.toReversed(), read(10)).texts, chains.map(([one]) => one!.content.target.id))
  t.end()
})

t.test('a clock that was set back changes nothing on its machine, and later events of others come after', (t) => {
  const chains = [[make(1, { time: 5_000 })], [make(2, { time: 2 })], [make(3, { time: 3 }), make(4, { time: 4 })], [make(6_000, { machine: 'there' })]]
  t.strictSame(order(chains, read(7_000)).texts, ['here 1', 'here 2', 'here 3', 'here 4', 'there 6000'])
  t.end()
})

t.test('a document keeps its order, whatever the clocks of its machines say', (t) => {
  const deletion = [make(5), make(2)]
  t.strictSame(order([[make(3)], deletion, [make(6)]], read(10)).texts, ['here 3', 'here 5', 'here 2', 'here 6'])
  t.strictSame(order([[make(9, { machine: 'there' }), make(4)], [make(6)]], read(10)).texts, ['here 6', 'there 9', 'here 4'])
  t.end()
})

t.test('an event that two documents carry is listed once', (t) => {
  const [one, other] = [make(1), make(2)]
  t.strictSame(order([[one, other], [one, other, make(3)]], read(10)).texts, ['here 1', 'here 2', 'here 3'])
  t.end()
})

t.test('nothing is published that began after the round did, nor what comes after it', (t) => {
  t.strictSame(order([[make(10)], [make(11)]], read(10)), { texts: ['here 10'], isAll: false })
  t.strictSame(order([[make(11)]], read(10)), { texts: [], isAll: false })
  t.strictSame(order([[make(11), make(3)], [make(4)]], read(10)), { texts: ['here 4'], isAll: false }, 'the rest of a document waits with it')
  t.end()
})

t.test('for other machines and early releases the time of day decides; a clock that is far ahead is not waited for', (t) => {
  for (const machine of ['there', 'early']) {
    t.equal(order([[make(9, { machine })]], read(10)).isAll, true, machine)
    t.equal(order([[make(10, { machine })]], read(10)).isAll, false, machine)
    t.equal(order([[make(1_009, { machine })]], read(10)).isAll, false, machine)
    t.equal(order([[make(1_010, { machine })]], read(10)).isAll, true, machine)
  }
  t.end()
})

t.test('where not all documents were read, nothing is published that an unread one may precede', (t) => {
  const [one, other, third] = [make(1), make(2), make(3)]
  t.strictSame(order([[one], [third], [other]], read(10, other.key)), { texts: ['here 1', 'here 2'], isAll: false })
  t.end()
})
