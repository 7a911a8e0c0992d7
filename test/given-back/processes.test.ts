import { setMaxListeners } from 'node:events'
import { Writable } from 'node:stream'
import t from 'tap'
import { type Channel, answerCounts, createIpcCounter } from '../../cli/process/ipc-counter.ts'
import { reportWhile } from '../../cli/progress.ts'
import { runApart } from '../../lib/apart.ts'
import { createCounter } from '../../lib/throttling/counter.ts'
import { type GivenBackRow, checkRow, watchSizes } from '../helpers/given-back.ts'

/** The signal of a command, which outlives its steps. */
const { signal } = new AbortController()
// A leak is found by its count, without a warning.
setMaxListeners(0, signal)
const signals = { 'the signal of the command': signal }
const module = new URL('../fixtures/waiting-module.ts', import.meta.url).href

/** A function in a process of its own. */
function apart (name: string, args: number[], use?: () => Promise<void>): GivenBackRow['call'] {
  return async () => await runApart({ module, name, args }, { signal, use })
}

/** A channel to a process that does this with a question. */
const toChannel = (send: (message: object, done: (error: Error | null) => void, answer: (message: unknown) => void) => void): Channel => {
  let listener = (_message: unknown) => {}
  return {
    send: (message, done) => setImmediate(() => send(message, done, listener)),
    on (_event, listen) {
      listener = listen
    }
  }
}

/** A count by another process, each time of another network. */
const count = async (channel: Channel, timeout?: number): Promise<Pick<GivenBackRow, 'call' | 'sizes'>> => {
  const { opened: counter, sizes } = await watchSizes(() => createIpcCounter(channel, timeout === undefined ? {} : { timeout }))
  return { call: async (index) => (await counter.count('guess', `network ${index}`, 1_000)).current, sizes }
}

function createAnswering (): Channel {
  let [ask, reply] = [(_message: unknown) => {}, (_message: unknown) => {}]
  answerCounts({ send: (message) => reply(message), on: (_event, listen) => { ask = listen } }, createCounter())
  return {
    send (message, done) {
      ask(message)
      done(null)
    },
    on (_event, listen) {
      reply = listen
    }
  }
}

const stderr = Object.assign(new Writable({ write: (_chunk, _encoding, done) => done() }), { isTTY: false })
const report = (run: () => Promise<string>) => async () => await reportWhile({ stderr, json: false }, 'a step', run)

const ROWS: Record<string, () => Promise<GivenBackRow>> = {
  'a function that runs apart': async () => ({ call: apart('wait', [0]), outcome: 'waited 0', signals, times: 3 }),
  'a function that runs apart and fails': async () => ({ call: apart('fail', []), outcome: 'database is locked', signals, times: 3 }),
  'a function that runs apart, whose process ends': async () => ({ call: apart('exit', []), outcome: /ended with 3/, signals, times: 3 }),
  'a function that runs apart, whose value cannot be used': async () => ({ call: apart('wait', [0], () => Promise.reject(new Error('no room'))), outcome: 'no room', signals, times: 3 }),
  'a count that is answered': async () => ({ ...await count(createAnswering()), outcome: 1 }),
  'a count on a closed channel': async () => ({ ...await count(toChannel((_message, done) => done(new Error('closed')))), outcome: 'ErrBusy' }),
  'a count without an answer': async () => ({ ...await count(toChannel((_message, done) => done(null)), 20), outcome: 'ErrBusy' }),
  'a step with reports': async () => ({ call: report(async () => 'done'), outcome: 'done' }),
  'a step with reports that fails': async () => ({ call: report(() => Promise.reject(new Error('down'))), outcome: 'down' })
}

for (const [name, open] of Object.entries(ROWS)) {
  t.test(`${name}: everything is given back`, async (t) => await checkRow(t, await open()))
}
