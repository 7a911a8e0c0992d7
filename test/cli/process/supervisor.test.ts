import t from 'tap'
import { Supervisor } from '../../../cli/process/supervisor.ts'

/** A supervisor with fake workers and a fake clock. */
function start (count: number) {
  let time = 0
  const timers: { at: number, run: () => void }[] = []
  const logged: { level: string, message: string, fields: object }[] = []
  const killed: string[] = []
  const ends: number[] = []
  let forked = 0
  let refusing = false
  const record = (level: string) => (fields: object | string, message = '') => {
    logged.push(typeof fields === 'string' ? { level, message: fields, fields: {} } : { level, message, fields })
  }
  const supervisor = new Supervisor({
    count,
    fork () {
      if (refusing) throw new Error('spawn ENOMEM')
      const id = ++forked
      return { id, pid: 100 + id, kill: (signal) => { killed.push(`${signal} ${id}`) } }
    },
    log: { info: record('info'), error: record('error'), fatal: record('fatal') },
    closeTimeout: 1000,
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
    /** Moves the clock to the next timer and runs it; returns the milliseconds passed. */
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

t.test('the first worker starts alone, the others when it listens', async (t) => {
  const { supervisor, forked } = start(3)
  t.equal(forked(), 1)
  supervisor.onListening(1)
  t.equal(forked(), 3)
  for (const id of [2, 3]) supervisor.onListening(id)
  t.equal(forked(), 3)
})

t.test('a first worker that cannot start ends the service', async (t) => {
  const failed = start(3)
  failed.supervisor.onExit(1, 1, null)
  t.strictSame([failed.ends, failed.logged, failed.forked()], [[1], [], 1], 'it has printed the reason itself')
  const killed = start(3)
  killed.supervisor.onExit(1, null, 'SIGKILL')
  t.strictSame(killed.ends, [1])
  t.match(killed.logged, [{ level: 'fatal', fields: { worker: 1, workerPid: 101, signal: 'SIGKILL' } }])
})

t.test('a worker that exits is replaced, with a growing delay while replacements fail', async (t) => {
  const { supervisor, next, pass, forked, logged } = start(2)
  supervisor.onListening(1)
  supervisor.onListening(2)
  pass(10_000)
  for (const id of [1, 3]) {
    supervisor.onExit(id, 1, null)
    t.equal(next(), 100, 'a stable worker resets the delay')
    pass(10_000)
  }
  t.equal(forked(), 4)
  const delays = []
  for (let id = 4; id < 8; id++) {
    supervisor.onExit(id, null, 'SIGSEGV')
    delays.push(next())
  }
  t.strictSame(delays, [100, 200, 400, 800])
  supervisor.onExit(8, 3, null)
  t.equal(next(), 1600)
  t.match(logged.at(-1), { level: 'error', fields: { worker: 8, exitCode: 3 } })
})

t.test('a worker that serves is left to serve when replacements fail', async (t) => {
  const { supervisor, next, ends, killed } = start(2)
  supervisor.onListening(1)
  supervisor.onListening(2)
  supervisor.onExit(2, 1, null)
  next()
  for (let id = 3; id < 20; id++) {
    supervisor.onExit(id, 1, null)
    const delay = next() ?? 0
    t.ok(delay <= 5000, `${delay} ms`)
  }
  t.strictSame([ends, killed], [[], []])
})

t.test('the service ends when replacements fail and no worker serves', async (t) => {
  const { supervisor, next, ends, logged } = start(1)
  supervisor.onListening(1)
  supervisor.onExit(1, 1, null)
  for (let id = 2; id < 7; id++) {
    next()
    t.strictSame(ends, [])
    supervisor.onExit(id, 1, null)
  }
  t.match(logged.at(-1), { level: 'fatal', fields: { worker: 6 } })
  t.strictSame(ends, [1])
})

t.test('a shutdown waits for all workers, and starts none', async (t) => {
  const { supervisor, ends, killed, forked, next } = start(2)
  supervisor.onListening(1)
  supervisor.onExit(2, 1, null)
  supervisor.close(0)
  t.strictSame([killed, ends], [['SIGTERM 1'], []])
  next()
  t.equal(forked(), 2, 'the pending replacement is dropped')
  supervisor.onExit(1, 0, null)
  t.strictSame(ends, [0])
})

for (const [what, code, signal, expected] of [
  ['gracefully', 0, null, 0],
  ['by SIGTERM, before it handles signals', null, 'SIGTERM', 0],
  ["by SIGINT, the terminal's, before it handles signals", null, 'SIGINT', 0],
  ['with an error', 1, null, 1],
  ['by SIGKILL', null, 'SIGKILL', 1]
] as const) {
  t.test(`a worker exits ${what} during a shutdown`, async (t) => {
    const { supervisor, ends } = start(1)
    supervisor.close(0)
    supervisor.onExit(1, code, signal)
    t.strictSame(ends, [expected])
  })
}

/** What happens to a worker, in this order; it may exit without having listened. */
const LIFE = ['listens', 'exits'] as const

t.test('a shutdown at any moment of the start ends with the last worker, and starts no other', async (t) => {
  // The events of two workers in every order, and the shutdown between any two of them.
  type Event = { id: number, what: typeof LIFE[number] }
  const orders: Event[][] = []
  function extend (done: Event[], left: Record<number, readonly (typeof LIFE[number])[]>): void {
    let isWhole = true
    for (const id of [1, 2]) {
      const [what, ...rest] = left[id]!
      if (what === undefined) continue
      isWhole = false
      extend([...done, { id, what }], { ...left, [id]: rest })
      // A worker may die before it listens.
      if (what === 'listens') extend([...done, { id, what: 'exits' }], { ...left, [id]: [] })
    }
    if (isWhole) orders.push(done)
  }
  extend([], { 1: LIFE, 2: LIFE })
  let count = 0
  for (const order of orders) {
    for (let at = 0; at <= order.length; at++) {
      const { supervisor, ends, killed, forked } = start(2)
      const workers = new Set<number>()
      let before = 0
      // An event of a worker that is not there yet, or no more, does not happen.
      const isThere = (id: number) => id <= forked() && !workers.has(id)
      for (const [index, { id, what }] of [...order, { id: 0, what: 'exits' as const }].entries()) {
        if (index === at) {
          if (ends.length > 0) break
          before = forked()
          supervisor.close(0)
        }
        if (id === 0 || !isThere(id)) continue
        if (what === 'listens') supervisor.onListening(id)
        else {
          workers.add(id)
          supervisor.onExit(id, index < at ? 1 : 0, null)
        }
      }
      if (before === 0) continue
      const name = `${order.map(({ id, what }) => `${id} ${what}`).join(', ')}; closed at ${at}`
      t.equal(forked(), before, `no worker after it: ${name}`)
      for (let id = 1; id <= before; id++) {
        if (!isThere(id)) continue
        t.ok(killed.includes(`SIGTERM ${id}`), `each that is left has the signal: ${name}`)
        supervisor.onExit(id, 0, null)
      }
      t.strictSame(ends, [0], `it ends once, without a timer: ${name}`)
      count++
    }
  }
  t.ok(count > 30, `${count} moments`)
})

t.test('workers that do not close in time are killed', async (t) => {
  const { supervisor, ends, killed, logged, next } = start(1)
  supervisor.onListening(1)
  supervisor.close(0)
  t.equal(next(), 1000)
  t.strictSame(killed, ['SIGTERM 1', 'SIGKILL 1'])
  t.match(logged.at(-1), { level: 'fatal' })
  supervisor.onExit(1, null, 'SIGKILL')
  t.strictSame(ends, [1])
})

t.test('a worker that cannot be killed is not waited for', async (t) => {
  const { supervisor, ends, next } = start(1)
  supervisor.onListening(1)
  supervisor.kill()
  t.strictSame(ends, [])
  t.equal(next(), 1000)
  t.strictSame(ends, [1])
})

t.test('a worker that could not be started is tried again', async (t) => {
  const { supervisor, forked, next } = start(2)
  supervisor.onListening(1)
  supervisor.onExit(2, null, null)
  t.equal(next(), 100)
  t.equal(forked(), 3)
})

t.test('a shutdown without workers ends at once', async (t) => {
  const { supervisor, ends } = start(1)
  supervisor.onListening(1)
  supervisor.onExit(1, null, 'SIGKILL')
  supervisor.close(0)
  t.strictSame(ends, [0])
})

t.test('a fork that the system refuses is tried again while a worker serves, and ends the service when none does', async (t) => {
  const { supervisor, next, forked, refuse, logged, ends, killed } = start(2)
  supervisor.onListening(1)
  supervisor.onListening(2)
  refuse(true)
  supervisor.onExit(2, null, 'SIGKILL')
  for (let attempt = 0; attempt < 20; attempt++) next()
  t.equal(next(), 5000)
  t.strictSame([ends, killed, forked()], [[], [], 2])
  t.match(logged.at(-1), { level: 'error', fields: { err: { message: 'spawn ENOMEM' } } })
  refuse(false)
  next()
  t.equal(forked(), 3)
  supervisor.onExit(3, null, 'SIGKILL')
  supervisor.onExit(1, null, 'SIGKILL')
  refuse(true)
  while (ends.length === 0 && next() !== undefined);
  t.strictSame(ends, [1])
})

t.test('a worker that is killed before it listened says what that usually means', (t) => {
  for (const [signal, cause] of [['SIGBUS', /: the disk is full/], ['SIGKILL', /: often too little memory$/], ['SIGSEGV', /listened$/]] as const) {
    const { supervisor, logged } = start(1)
    supervisor.onExit(1, null, signal)
    t.match(logged.at(-1)?.message, cause, signal)
  }
  t.end()
})
