import t from 'tap'
import { Slots, type TaskOptions } from '../../../lib/work/slots.ts'

/** Slots, with tasks that end on demand. */
function open (options: ConstructorParameters<typeof Slots>[0]) {
  const slots = new Slots(options)
  const started: string[] = []
  const ends = new Map<string, () => void>()
  return {
    slots,
    started,
    begin (name: string, task?: TaskOptions): void {
      slots.run(async () => {
        started.push(name)
        await new Promise<void>((resolve) => ends.set(name, resolve))
      }, task).catch(() => {})
    },
    async end (name: string): Promise<void> {
      ends.get(name)!()
      await new Promise(setImmediate)
    }
  }
}

t.test('lanes take turns, and one lane has only its share', async (t) => {
  const { begin, end, started } = open({ size: 3, lane: 2 })
  for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']) begin(name, { lane: name[0]! })
  await new Promise(setImmediate)
  t.strictSame(started, ['a1', 'a2', 'b1'])
  await end('a1')
  await end('b1')
  t.strictSame(started.slice(3), ['a3', 'b2'], 'the lane that was served least recently goes first')
  await end('a2')
  t.equal(started.at(-1), 'c1')
})

t.test('is full when no further task may wait, in whichever lane', async (t) => {
  const { slots, begin, end } = open({ size: 2, lane: 1, waiting: 1 })
  for (const name of ['a1', 'a2']) begin(name, { lane: 'a' })
  t.equal(slots.isFull, false, 'one waits for its lane, while a slot is free')
  begin('b1', { lane: 'b' })
  t.equal(slots.isFull, true)
  await new Promise(setImmediate)
  await end('a1')
  t.equal(slots.isFull, false)
  slots.drop()
  begin('b2', { lane: 'b' })
  t.equal(slots.isFull, true)
  slots.drop()
  t.equal(slots.isFull, false)
})

t.test('urgent tasks have slots that no others take, and may take all', async (t) => {
  const { begin, started } = open({ size: 4, reserved: 2 })
  for (let number = 0; number < 4; number++) begin(`other${number}`, { lane: `${number}` })
  for (let number = 0; number < 3; number++) begin(`urgent${number}`, { lane: `u${number}`, urgent: true })
  await new Promise(setImmediate)
  t.strictSame(started, ['other0', 'other1', 'urgent0', 'urgent1'])
  const all = open({ size: 4, reserved: 2 })
  for (let number = 0; number < 5; number++) all.begin(`urgent${number}`, { urgent: true })
  await new Promise(setImmediate)
  t.equal(all.started.length, 4)
})

t.test('a task that fails gives its slot back, and settle waits for all', async (t) => {
  const slots = new Slots({ size: 1 })
  const failed = slots.run(async () => { throw new Error('no') })
  const second = slots.run(async () => 2)
  await slots.settle()
  await t.rejects(failed, /no/)
  t.equal(await second, 2)
  t.equal(slots.running, 0)
})

t.test('dropped tasks do not start', async (t) => {
  const { slots, begin, end, started } = open({ size: 1 })
  begin('first')
  begin('second')
  await new Promise(setImmediate)
  slots.drop()
  await end('first')
  await slots.settle()
  t.strictSame(started, ['first'])
})

t.test('a lane has its share also after one of its tasks has ended, and after the waiting ones were dropped', async (t) => {
  for (const isDropped of [false, true]) {
    const { slots, begin, end, started } = open({ size: 4, lane: 2 })
    for (const name of ['a1', 'a2']) begin(name, { lane: 'a' })
    await new Promise(setImmediate)
    if (isDropped) slots.drop()
    else await end('a1')
    for (const name of ['a3', 'a4']) begin(name, { lane: 'a' })
    await new Promise(setImmediate)
    t.strictSame(started.slice(2), isDropped ? [] : ['a3'])
    await end('a2')
    t.strictSame(started.slice(2), isDropped ? ['a3'] : ['a3', 'a4'])
  }
})

t.test('urgent tasks take no slot from the share of the others, before and after their end', async (t) => {
  const { begin, end, started } = open({ size: 4, reserved: 2 })
  for (const name of ['urgent1', 'urgent2']) begin(name, { lane: name, urgent: true })
  for (const name of ['other1', 'other2', 'other3', 'other4']) begin(name, { lane: name })
  await new Promise(setImmediate)
  t.strictSame(started, ['urgent1', 'urgent2', 'other1', 'other2'])
  await end('urgent1')
  t.equal(started.length, 4, 'a slot that was reserved stays so')
  await end('other1')
  t.strictSame(started.slice(4), ['other3'])
})
