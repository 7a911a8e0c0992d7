import type { FastifyBaseLogger } from 'fastify'
import t from 'tap'
import { busyError } from '../../lib/errors.ts'
import { BusyLog } from '../../plugins/failure-log.ts'
import { createTimers } from '../helpers/timers.ts'

t.test('refusals are one line in a second, with their number', (t) => {
  const timers = createTimers()
  const lines: unknown[] = []
  const log = { error: (fields: object, message: string) => lines.push({ ...fields, message }) } as unknown as FastifyBaseLogger
  const busy = new BusyLog(timers)
  const refuse = (times: number) => { for (let i = 0; i < times; i++) busy.count(log, busyError('hashes')) }
  const line = (refused: number) => ({ code: 'ErrBusy', refused, message: 'too many hashes are waiting' })
  refuse(500)
  t.same(lines, [line(1)], 'the first at once')
  timers.advance(1000)
  t.same(lines.splice(0), [line(1), line(499)])
  refuse(3)
  timers.advance(999)
  t.same(lines, [])
  timers.advance(1)
  t.same(lines.splice(0), [line(3)])
  timers.advance(1000)
  refuse(1)
  t.same(lines, [line(1)], 'after a quiet second at once again')
  timers.advance(1000)
  t.end()
})
