import t from 'tap'
import { keepLease } from '../../../lib/work/lease.ts'
import { createTimers } from '../../helpers/timers.ts'

const INTERVAL = 10_000

const turn = async () => await new Promise(setImmediate)

/** A lease whose renewals end when the test says. */
function open () {
  const timers = createTimers()
  const renewals: PromiseWithResolvers<void>[] = []
  const errors: unknown[] = []
  const release = keepLease(async () => {
    const renewal = Promise.withResolvers<void>()
    renewals.push(renewal)
    await renewal.promise
  }, { timers, interval: INTERVAL, onError: (error) => { errors.push(error) } })
  return { timers, renewals, errors, release }
}

/** How a renewal ends that is in flight at the release, and what is reported. */
const ENDS: [name: string, end: (renewal: PromiseWithResolvers<void>) => void, errors: RegExp[]][] = [
  ['succeeds', ({ resolve }) => resolve(), []],
  ['fails', ({ reject }) => reject(new Error('the store is down')), [/the store is down/]]
]

for (const [name, end, reported] of ENDS) {
  t.test(`a release waits for the renewal in flight, which ${name}, and no renewal follows`, async (t) => {
    const { timers, renewals, errors, release } = open()
    timers.advance(INTERVAL)
    t.equal(renewals.length, 1)
    let releases = 0
    const both = [release(), release()].map((one) => one.then(() => { releases++ }))
    await turn()
    t.equal(releases, 0, 'it waits')
    end(renewals[0]!)
    await Promise.all(both)
    timers.advance(10 * INTERVAL)
    await turn()
    t.equal(renewals.length, 1)
    t.match(errors.map(String), reported)
  })

  t.test(`after a renewal that ${name} the next one follows, and a release between two of them is immediate`, async (t) => {
    const { timers, renewals, release } = open()
    for (let count = 1; count <= 3; count++) {
      timers.advance(INTERVAL - 1)
      t.equal(renewals.length, count - 1)
      timers.advance(1)
      t.equal(renewals.length, count)
      timers.advance(INTERVAL)
      t.equal(renewals.length, count, 'one at a time')
      end(renewals.at(-1)!)
      await turn()
    }
    await release()
    timers.advance(10 * INTERVAL)
    t.equal(renewals.length, 3)
  })
}

t.test('a lease that is released before its first renewal has none', async (t) => {
  const { timers, renewals, release } = open()
  await release()
  timers.advance(INTERVAL)
  t.equal(renewals.length, 0)
})
