import t from 'tap'
import { type Ended, Outage } from '../../../lib/work/outage.ts'
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
