import { execFileSync } from 'node:child_process'
import { closeSync, constants, existsSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { LogOutput } from '../../../cli/process/log-output.ts'
import { within } from '../../helpers/upstream.ts'

t.test('lines are written whole and in order', async (t) => {
  const file = join(t.testdir(), 'log')
  const fd = openSync(file, 'w')
  t.teardown(() => closeSync(fd))
  const output = new LogOutput(fd)
  for (let i = 0; i < 1000; i++) output.write(`line ${i}\n`)
  await within('the end of writing', output.drained())
  t.notOk(output.stuck)
  const lines = Array.from({ length: 1000 }, (_none, i) => `line ${i}\n`)
  t.equal(readFileSync(file, 'utf8'), lines.join(''))
})

t.test('several processes that share a pipe keep each line whole, also while nobody reads', { skip: process.platform === 'win32' && 'there are no named pipes' }, async (t) => {
  const pipe = join(t.testdir(), 'pipe')
  execFileSync('mkfifo', [pipe])
  const fd = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)
  t.teardown(() => closeSync(fd))
  const long = 'ü'.repeat(5000)
  const outputs = Array.from({ length: 4 }, () => new LogOutput(fd, { shared: true }))
  const each = 200
  for (let i = 0; i < each; i++) {
    for (const output of outputs) output.write(`${JSON.stringify({ level: 30, time: i, msg: 'x'.repeat(i * 7) })}\n`)
  }
  for (const output of outputs) {
    output.write(`${JSON.stringify({ level: 50, time: 0, pid: 7, reqId: 'r', err: { type: 'Error', message: long, stack: long }, msg: long })}\n`)
    output.write(`no object ${long}\n`)
  }
  const room = Buffer.alloc(10_000)
  let text = ''
  const lines = () => text.split('\n').slice(0, -1)
  await within('all lines', (async () => {
    while (lines().length < outputs.length * (each + 2)) {
      try {
        text += room.toString('latin1', 0, readSync(fd, room))
      } catch {
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
  })())
  const cut = lines().filter((line) => line.startsWith('no object'))
  const read = lines().filter((line) => !line.startsWith('no object')).map((line) => JSON.parse(line))
  t.equal(cut.length, outputs.length)
  t.equal(read.filter(({ level }) => level === 30).length, outputs.length * each)
  const shortened = read.filter(({ level }) => level === 50)
  t.equal(shortened.length, outputs.length)
  t.match(shortened[0], { pid: 7, reqId: 'r', err: { type: 'Error' }, shortened: true })
})

t.test('a destination that fails drops no line that fits into the buffer, and blocks nothing', async (t) => {
  for (const [count, dropped] of [[3, undefined], [5000, 5000 - 4096 + 1]] as const) {
    const file = join(t.testdir(), 'log')
    const fd = openSync(file, 'w')
    const output = new LogOutput(fd)
    closeSync(fd)
    for (let i = 0; i < count; i++) output.write(`${'x'.repeat(1023)}\n`)
    await within('the failed write', output.drained())
    t.notOk(output.stuck)
    // The system gives the lowest free descriptor: the same one.
    t.equal(openSync(file, 'w'), fd)
    t.teardown(() => closeSync(fd))
    output.write('last\n')
    await within('the next attempt', output.drained())
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    t.equal(lines.filter((line) => line.startsWith('x')).length, Math.min(count, 4096))
    if (dropped === undefined) t.equal(lines.at(-1), 'last')
    else t.match(JSON.parse(lines.at(-1) ?? ''), { level: 40, dropped })
  }
})

t.test('a full disk neither blocks nor throws', { skip: !existsSync('/dev/full') && 'there is no /dev/full' }, async (t) => {
  const fd = openSync('/dev/full', 'w')
  t.teardown(() => closeSync(fd))
  const output = new LogOutput(fd)
  output.write('lost\n')
  await within('the failed write', output.drained())
  t.notOk(output.stuck)
})

t.test('lines beyond the buffer are dropped and counted while nobody reads', { skip: process.platform === 'win32' && 'there are no named pipes' }, async (t) => {
  const pipe = join(t.testdir(), 'pipe')
  execFileSync('mkfifo', [pipe])
  const fd = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)
  t.teardown(() => closeSync(fd))
  // Fills the pipe.
  const filler = Buffer.alloc(65_536)
  let filled = 0
  t.throws(() => { for (;;) filled += writeSync(fd, filler) }, { code: 'EAGAIN' })

  const output = new LogOutput(fd)
  output.write('first\n')
  const long = `${'x'.repeat(1024 * 1024 - 1)}\n`
  for (let i = 0; i < 6; i++) output.write(long)
  await within('the bounded wait', output.drained())
  t.notOk(output.stuck, 'a full pipe does not block an exit')
  const room = Buffer.alloc(1024 * 1024)
  let text = ''
  await within('the count', (async () => {
    while (!text.endsWith('dropped"}\n')) {
      try {
        text += room.toString('latin1', 0, readSync(fd, room))
      } catch {
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
  })())
  const lines = text.slice(filled).trimEnd().split('\n')
  t.strictSame(lines.map(({ length }) => length).slice(0, 4), [5, ...Array(3).fill(1024 * 1024 - 1)])
  t.match(JSON.parse(lines.at(-1) ?? ''), { dropped: 3, level: 40 })
})
