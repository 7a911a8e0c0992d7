import { chmodSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { warnOfMode } from '../../lib/file-mode.ts'

t.test('a file with secrets is warned of when others can read or write it, unless nobody may write it', { skip: process.platform === 'win32' }, (t) => {
  const file = `${t.testdir()}/secret.key`
  writeFileSync(file, '')
  const isWarnedOf = (mode: number) => {
    chmodSync(file, mode)
    const warnings: string[] = []
    warnOfMode('key', file, (message) => warnings.push(message))
    return warnings.length > 0
  }
  for (const mode of [0o644, 0o640, 0o604, 0o620, 0o464, 0o777]) t.ok(isWarnedOf(mode), mode.toString(8))
  for (const mode of [0o600, 0o400, 0o444, 0o440]) t.notOk(isWarnedOf(mode), mode.toString(8))
  t.end()
})
