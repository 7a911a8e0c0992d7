import t from 'tap'
import { Supervisor } from '../../../cli/process/supervisor.ts'

/** A supervisor whose workers and whose time are the test's. */
function start (count: number) {
  let time = 0
  const timers: { at: number, run: () => void }[] = []
  const logged: { level: string, message: string, fields: Record<string, unknown> }[] = []
  const killed: string[] = []
  const ends: number[] = []
  let forked = 0
  let refusing = false
  const say = (level: string) => (message: string, fields: Record<string, unknown> = {}) => { logged.push({ level, message, fields }) }
  const supervisor = new Supervisor({
    count,
    fork () {
      if (refusing) throw new Error('spawn ENOMEM')
      const id = ++forked
      return { id, pid: 100 + id, kill: (signal) => { killed.push(`${signal} ${id}`) } }
    },
    log: { info: say('info'), warn: say('warn'), error: say('error'), fatal: say('fatal') },
    limit: 1000,
    end: (code) => { ends.push(code) },
    now: () => time,
    later: (milliseconds, run) => { timers.push({ at: time + milliseconds, run }) }
  })
  supervisor.start()
  return {
    supervisor,
    logged,
    killed,
    ends,
    forked: () => forked,
    refuse (on: boolean) { refusing = on },
    /** Milliseconds until the next timer, to which time moves. */
    next (): number | undefined {
      timers.sort((one, other) => one.at - other.at)
      const timer = timers.shift()
      if (timer === undefined) return undefined
      const passed = timer.at - time
      time = timer.at
      timer.run()
      return passed
    },
    pass (milliseconds: number) { time += milliseconds }
  }
}

t.test('the first is alone until it listens', async (t) => {
  const { supervisor, forked } = start(3)
  t.equal(forked(), 1)
  supervisor.listening(1)
  t.equal(forked(), 3)
  for (const id of [2, 3]) supervisor.listening(id)
  t.equal(forked(), 3)
})

t.test('one that cannot begin has said why, and ends the service', async (t) => {
  const failed = start(3)
  failed.supervisor.exited(1, 1, null)
  t.strictSame([failed.ends, failed.logged, failed.forked()], [[1], [], 1])
  const killed = start(3)
  killed.supervisor.exited(1, null, 'SIGKILL')
  t.strictSame(killed.ends, [1])
  t.match(killed.logged, [{ level: 'fatal', fields: { worker: 1, workerPid: 101, signal: 'SIGKILL' } }])
})

t.test('one that ends is replaced, later and later while they keep ending at once, and then no more', async (t) => {
  const { supervisor, next, pass, forked, logged, ends, killed } = start(2)
  supervisor.listening(1)
  supervisor.listening(2)
  pass(10_000)
  for (const id of [1, 3]) {
    supervisor.exited(id, 1, null)
    t.equal(next(), 100, 'one that has served for long is a new beginning')
    pass(10_000)
  }
  t.equal(forked(), 4)
  const delays = []
  for (let id = 4; id < 8; id++) {
    supervisor.exited(id, null, 'SIGSEGV')
    delays.push(next())
  }
  t.strictSame(delays, [100, 200, 400, 800])
  supervisor.exited(8, 3, null)
  t.equal(next(), 1600)
  t.match(logged.at(-1), { level: 'error', fields: { worker: 8, exitCode: 3 } })
  supervisor.exited(9, 3, null)
  t.match(logged.at(-1), { level: 'fatal', fields: { worker: 9 } })
  t.strictSame(killed, ['SIGTERM 2'], 'the one that serves finishes what it has')
  t.strictSame(ends, [])
  supervisor.exited(2, 0, null)
  t.strictSame(ends, [1])
})

t.test('closing waits for all of them, and no other is started', async (t) => {
  const { supervisor, ends, killed, forked, next } = start(2)
  supervisor.listening(1)
  supervisor.exited(2, 1, null)
  supervisor.close()
  t.strictSame([killed, ends], [['SIGTERM 1'], []])
  next()
  t.equal(forked(), 2, 'nor the one that was to replace another')
  supervisor.exited(1, 0, null)
  t.strictSame(ends, [0])
})

for (const [what, code, signal, expected] of [
  ['in good order', 0, null, 0],
  ['of the signal itself, before it could obey', null, 'SIGTERM', 0],
  ['badly', 1, null, 1],
  ['killed by another', null, 'SIGKILL', 1]
] as const) {
  t.test(`a worker that ends ${what} while the service closes`, async (t) => {
    const { supervisor, ends } = start(1)
    supervisor.close()
    supervisor.exited(1, code, signal)
    t.strictSame(ends, [expected])
  })
}

t.test('what takes longer than the limit is killed', async (t) => {
  const { supervisor, ends, killed, logged, next } = start(1)
  supervisor.listening(1)
  supervisor.close()
  t.equal(next(), 1000)
  t.strictSame(killed, ['SIGTERM 1', 'SIGKILL 1'])
  t.match(logged.at(-1), { level: 'fatal' })
  supervisor.exited(1, null, 'SIGKILL')
  t.strictSame(ends, [1])
})

t.test('one that cannot even be killed is not waited for', async (t) => {
  const { supervisor, ends, next } = start(1)
  supervisor.listening(1)
  supervisor.cut()
  t.strictSame(ends, [])
  t.equal(next(), 1000)
  t.strictSame(ends, [1])
})

t.test('one that could not be started is tried again', async (t) => {
  const { supervisor, forked, next } = start(2)
  supervisor.listening(1)
  supervisor.exited(2, null, null)
  t.equal(next(), 100)
  t.equal(forked(), 3)
})

t.test('a signal while nobody runs ends it', async (t) => {
  const { supervisor, ends } = start(1)
  supervisor.listening(1)
  supervisor.exited(1, null, 'SIGKILL')
  supervisor.close()
  t.strictSame(ends, [0])
})

t.test('a start that the system refuses is tried again for as long as others serve, and ends nothing', async (t) => {
  const { supervisor, next, forked, refuse, logged, ends, killed } = start(2)
  supervisor.listening(1)
  supervisor.listening(2)
  refuse(true)
  supervisor.exited(2, null, 'SIGKILL')
  t.equal(next(), 100)
  for (let attempt = 0; attempt < 10; attempt++) t.equal(next(), 5000)
  t.strictSame([ends, killed, forked()], [[], [], 2])
  t.match(logged.at(-1), { level: 'error', fields: { error: 'spawn ENOMEM' } })
  refuse(false)
  next()
  t.equal(forked(), 3)
  supervisor.exited(3, null, 'SIGKILL')
  supervisor.exited(1, null, 'SIGKILL')
  refuse(true)
  while (ends.length === 0 && next() !== undefined);
  t.strictSame(ends, [1], 'with none left it is given up')
})
