import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadLogFormat } from '../../../cli/process/log-format.ts'
import { LogOutput } from '../../../cli/process/log-output.ts'

const LINE = `${JSON.stringify({ level: 40, time: 0, pid: 1, hostname: 'h', msg: 'a \u001b[2J\u009b\u202e\\u001b "message"', reqId: 'r1' })}\n`

t.test('log lines are text on a terminal and JSON elsewhere, as far as LOG_FORMAT does not decide', async (t) => {
  for (const [config, isTTY, isText] of [[{}, true, true], [{}, false, false], [{ logFormat: 'json' }, true, false], [{ logFormat: 'text' }, false, true]] as const) {
    const format = await loadLogFormat(config, { isTTY }, {})
    t.equal(format !== undefined, isText, JSON.stringify({ ...config, isTTY }))
  }
})

t.test('text has the time, the level, the message and the other fields, and controls no terminal', async (t) => {
  const format = await loadLogFormat({ logFormat: 'text' }, { isTTY: false }, {})
  t.match(format?.(LINE), /^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] WARN: a \?\[2J\?\?\\u001b "message" \{"reqId":"r1"\}\n$/)
  const colored = await loadLogFormat({}, { isTTY: true }, {})
  t.match(colored?.(LINE), '\u001b[33mWARN')
  t.notMatch((await loadLogFormat({}, { isTTY: true }, { NO_COLOR: '1' }))?.(LINE), '\u001b')
})

t.test('the output writes text, and shortens what several processes write', async (t) => {
  const file = join(t.testdir(), 'log')
  const fd = openSync(file, 'w')
  const format = await loadLogFormat({ logFormat: 'text' }, { isTTY: false }, {})
  const output = new LogOutput(fd, { shared: true, format })
  output.write(LINE)
  output.write(`${JSON.stringify({ level: 30, time: 0, msg: 'long', extra: 'x'.repeat(5000) })}\n`)
  await output.drained()
  closeSync(fd)
  const lines = readFileSync(file, 'utf8').split('\n')
  t.match(lines, [/WARN: a/, /INFO: long \{"shortened":true\}/, ''])
})
