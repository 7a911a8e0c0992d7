import t from 'tap'
import { type Ended, Outage, Outages } from '../../../lib/work/outage.ts'
import { createTimers } from '../../helpers/timers.ts'

const SECOND = 1_000

function open (quiet?: number) {
  const timers = createTimers()
  const told: (string | Ended)[] = []
  const outage = new Outage({
    onBegin: (error) => { told.push((error as Error).message) }, onEnd: (ended) => { told.push(ended) }, timers, ...(quiet !== undefined && { quiet })
  })
  return { timers, told, outage, fail: (message: string) => outage.fail(new Error(message)) }
}

t.test('an outage is told by its first failure, and at its end with the number of failures', (t) => {
  const { timers, told, outage, fail } = open()
  outage.succeed()
  t.strictSame(told, [], 'calls that succeed are none')
  t.equal(fail('refused'), true)
  for (let second = 0; second < 120; second++) {
    timers.advance(SECOND)
    t.equal(fail('refused again'), false)
  }
  t.equal(outage.isOn, true)
  t.strictSame(told, ['refused'])
  timers.advance(SECOND)
  outage.succeed()
  outage.succeed()
  t.strictSame(told.slice(1), [{ failures: 121, seconds: 121 }])
  t.equal(outage.isOn, false)
  t.end()
})

t.test('the next outage has lines of its own', (t) => {
  const { timers, told, outage, fail } = open()
  fail('one')
  outage.succeed()
  timers.advance(60 * SECOND)
  fail('two')
  timers.advance(2 * SECOND)
  outage.succeed()
  t.strictSame(told, ['one', { failures: 1, seconds: 0 }, 'two', { failures: 1, seconds: 2 }])
  t.end()
})

t.test('what fails every other time writes two lines a minute, and an outage that lasts is told within that time', (t) => {
  const { timers, told, outage, fail } = open()
  for (let second = 0; second < 600; second++) {
    fail(`at ${second}`)
    outage.succeed()
    timers.advance(SECOND)
  }
  t.equal(told.length, 20)
  told.length = 0
  fail('last')
  for (let second = 0; second < 60; second++) {
    timers.advance(SECOND)
    fail('again')
  }
  t.strictSame(told, ['last'], 'the last quiet time was over')
  outage.succeed()
  told.length = 0
  fail('soon')
  t.strictSame(told, [])
  timers.advance(60 * SECOND)
  fail('still')
  outage.succeed()
  t.strictSame(told, ['still', { failures: 2, seconds: 60 }], 'it counts from its first failure')
  t.end()
})

t.test('without a quiet time each outage is told at once', (t) => {
  const { told, outage, fail } = open(0)
  fail('one')
  outage.succeed()
  fail('two')
  t.equal(told.length, 3)
  t.end()
})

t.test('each receiver has outages of its own, and a hundred of a kind at most: the others share one', (t) => {
  const timers = createTimers()
  const told: string[] = []
  const outages = new Outages({ onChange: (of, change, name) => { told.push(`${of} ${name}: ${'error' in change ? 'begins' : change.failures}`) }, timers })
  const fail = (name: string) => outages.of('webhook', name).fail(new Error('no'))
  outages.of('webhook', 'none').succeed()
  outages.of('mail').fail(new Error('no'))
  fail('a')
  fail('a')
  fail('b')
  outages.of('upstream', 'a').succeed()
  t.strictSame(told.splice(0), ['mail undefined: begins', 'webhook a: begins', 'webhook b: begins'])
  t.strictSame(outages.count(), { mail: 1, upstream: 0, document: 0, logout: 0, webhook: 2 })
  for (let number = 0; number < 500; number++) fail(`w${number}`)
  t.equal(told.length, 98 + 1, 'one line for all others')
  t.equal(told.at(-1), 'webhook undefined: begins')
  timers.advance(2 * 60 * SECOND)
  outages.of('webhook', 'a').succeed()
  t.equal(told.at(-1), 'webhook a: 2')
  fail('late')
  t.equal(told.at(-1), 'webhook late: begins', 'one that has ended gives its place to another')
  t.end()
})
