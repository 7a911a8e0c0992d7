import { once } from 'node:events'
import t from 'tap'
import { runProgram, serviceEnv, startProgram } from './helpers/process.ts'
import { within } from './helpers/upstream.ts'

t.test('the program prints one JSON object on stdout, or text on stderr and exits with 1', async (t) => {
  const env = serviceEnv(t.testdir())
  const made = await runProgram(t, 'cli.ts', { args: ['bootstrap', '--json'], env })
  t.equal(made.code, 0)
  t.match(made.stderr, /^fastify-identity: warning: a new, empty database was made: .*identity\.db\n$/)
  t.match(made.stdout, /^\{"user_id":.*\}\n$/)
  const refused = await runProgram(t, 'cli.ts', { args: ['bootstrap', '--json'], env })
  t.strictSame(refused, { code: 1, stdout: '', stderr: 'fastify-identity: an admin exists: bootstrap only makes the first one\n' })
})

t.test('a password is read from stdin', async (t) => {
  const program = startProgram(t, 'cli.ts', { args: ['user', 'create', '--account', 'ann', '--password-stdin', '--json'], env: serviceEnv(t.testdir()), stdio: 'pipe' })
  program.child.stdin?.end('hunter2\n')
  t.equal(await program.ended, 0)
  t.match(program.stdout(), /^\{"user_id":"\w{34}","account":"ann"\}\n$/)
})

t.test('the testing kit is served until stdin closes or a signal arrives, and exits with 0', async (t) => {
  const program = startProgram(t, 'cli.ts', { args: ['testing'], env: {}, stdio: 'pipe' })
  const [, url] = await program.seen(/^\{"url":"(.*)"\}$/m)
  t.equal((await fetch(`${url}/testing`)).status, 200)
  program.child.kill('SIGTERM')
  t.equal(await program.ended, 0)
})

t.test('a signal ends a waiting command with the code of the signal', async (t) => {
  const program = startProgram(t, 'cli.ts', { args: ['user', 'create', '--account', 'ann', '--password-stdin'], env: serviceEnv(t.testdir()), stdio: 'pipe' })
  const again = setInterval(() => program.child.kill('SIGINT'), 100)
  t.teardown(() => clearInterval(again))
  const [code, signal] = await within('the end', once(program.child, 'exit'))
  t.ok(code === 130 || signal === 'SIGINT', 'as Ctrl-C, whether it came before the command began or after')
})
