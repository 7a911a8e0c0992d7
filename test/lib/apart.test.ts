import { type ChildProcess, spawn } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { runApart } from '../../lib/apart.ts'
import { createCli } from '../helpers/cli.ts'
import { waitUntil } from '../helpers/wait.ts'

const module = new URL('../fixtures/waiting-module.ts', import.meta.url).href

/** Calls `seen` with each process that this one starts. */
function watchProcesses (t: Test, seen: (child: ChildProcess) => void): void {
  const listen = (message: unknown) => seen((message as { process: ChildProcess }).process)
  subscribe('child_process', listen)
  t.teardown(() => unsubscribe('child_process', listen))
}

t.test('a function runs apart: its value, its error and the end of its process come back', async (t) => {
  t.equal(await runApart({ module, name: 'wait', args: [0] }), 'waited 0')
  await t.rejects(runApart({ module, name: 'fail', args: [] }), { message: 'database is locked', errcode: 5 })
  await t.rejects(runApart({ module, name: 'exit', args: [] }), { message: 'the process of this step ended with 3' })
  const children: ChildProcess[] = []
  watchProcesses(t, (child) => children.push(child))
  await runApart({ module, name: 'wait', args: [0] }, { use: async () => t.equal(children[0]!.exitCode, null, 'it lives while its value is used') })
  t.equal(children[0]!.exitCode, 0)
})

t.test('a signal ends it while it blocks, and not while its value is used', async (t) => {
  const ending = new AbortController()
  const children: ChildProcess[] = []
  watchProcesses(t, (child) => {
    children.push(child)
    child.once('spawn', () => ending.abort())
  })
  await t.rejects(runApart({ module, name: 'wait', args: [600_000] }, { signal: ending.signal }), { name: 'AbortError' })
  t.equal(children[0]!.signalCode, 'SIGKILL')
  await t.rejects(runApart({ module, name: 'wait', args: [0] }, { signal: ending.signal }), { name: 'AbortError' })
  t.equal(children.length, 1, 'after the signal none is started')
  const late = new AbortController()
  t.equal(await runApart({ module, name: 'wait', args: [0] }, { signal: late.signal, use: async () => late.abort() }), 'waited 0')
  t.match(children[1], { exitCode: 0, signalCode: null }, 'whatever the function has opened stays open')
})

t.test('backup, restore, compact and doctor end on a signal, and leave no file', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  await run('user create --account ann')
  t.equal((await run(['backup', '--file', join(dir, 'good.db')])).code, 0)
  // A process that is killed leaves the log of the database, which SQLite removes when it is opened and closed again.
  const list = () => readdirSync(dir).filter((name) => !/-(?:wal|shm)$/.test(name)).sort()
  const before = list()
  const content = readFileSync(join(dir, 'identity.db'))
  const aborted: ChildProcess[] = []
  let ending = new AbortController()
  watchProcesses(t, (child) => child.once('spawn', () => {
    aborted.push(child)
    ending.abort()
  }))
  for (const line of [`backup --file ${join(dir, 'new.db')}`, `restore --file ${join(dir, 'good.db')}`, 'compact', 'doctor']) {
    ending = new AbortController()
    t.match(await run(line, { signal: ending.signal }), { code: 1, stdout: '', stderr: '' }, line)
    t.strictSame(list(), before, line)
    t.equal(aborted.pop()?.signalCode, 'SIGKILL', line)
  }
  t.strictSame(readFileSync(join(dir, 'identity.db')), content)
  t.match(await createCli(dir)('user list'), { code: 0, stdout: /ann/ })
})

t.test('SIGTERM ends a backup in the middle of its copy, with 143', async (t) => {
  const dir = t.testdir()
  await createCli(dir)('user create --account ann')
  const database = new DatabaseSync(join(dir, 'identity.db'))
  database.exec("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) INSERT INTO webhook_attempts (id, doc) SELECT 'a' || i, json_object('id', 'a' || i, 'text', hex(zeroblob(500))) FROM n")
  database.close()
  const file = join(dir, 'new.db')
  const child = spawn(process.execPath, [new URL('../../cli.ts', import.meta.url).pathname, 'backup', '--file', file], {
    stdio: 'ignore', env: { ...process.env, DATABASE_URL: `sqlite:${join(dir, 'identity.db')}` }
  })
  t.teardown(() => child.kill('SIGKILL'))
  const { promise: exited, resolve } = Promise.withResolvers<number | null>()
  child.on('exit', resolve)
  await waitUntil('the draft', () => readdirSync(dir).some((name) => name.startsWith('.new.db')))
  child.kill('SIGTERM')
  t.equal(await exited, 143)
  t.notOk(existsSync(file))
  t.notOk(readdirSync(dir).some((name) => name.startsWith('.new.db')), 'no draft is left')
})
