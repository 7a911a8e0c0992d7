import { spawnSync } from 'node:child_process'
import t, { type Test } from 'tap'
import { COMMANDS } from '../../cli/main.ts'
import { createCli } from '../helpers/cli.ts'

const has = (shell: string): boolean => spawnSync(shell, ['-c', 'exit 0']).status === 0
const skipWithout = (shell: string) => ({ skip: !has(shell) && `there is no ${shell}` })

/** Typed words, and the completions of the last one. */
const CASES: [typed: string[], completions: string[]][] = [
  [['use'], ['user']],
  [['user', 'di'], ['disable']],
  [['user', 'factors', ''], ['list', 'reset']],
  [['help', 'user', 'di'], ['disable']],
  [['user', 'delete', '--c'], ['--clients']],
  [['user', 'delete', 'ann', '--'], ['--account', '--clients', '--force', '--yes', '--json', '--help']],
  [['keys', 'rotate', '--alg', ''], ['RS256', 'ES256']],
  [['user', 'import', '--from', 'fast'], ['fastify-identity']],
  [['completion', ''], ['bash', 'zsh', 'fish']],
  [['move', '--f'], ['--from']]
]

async function writeScript (t: Test, shell: string): Promise<string> {
  const { code, stdout } = await createCli(t.testdir())(`completion ${shell}`)
  t.equal(code, 0)
  for (const name of Object.keys(COMMANDS)) t.ok(stdout.includes(`'${name}'`), `${shell}: ${name}`)
  return stdout
}

t.test('bash completes commands, flags, values and files', skipWithout('bash'), async (t) => {
  const script = await writeScript(t, 'bash')
  const dir = t.testdir({ 'a file.json': '' })
  const complete = (words: string[]) => {
    const call = `${script}\nCOMP_WORDS=(fastify-identity "$@"); COMP_CWORD=$#; _fastify_identity; printf '%s\\n' "\${COMPREPLY[@]}"`
    const { stdout, stderr } = spawnSync('bash', ['-c', call, 'bash', ...words], { cwd: dir, encoding: 'utf8' })
    t.equal(stderr, '')
    return stdout.split('\n').filter(Boolean)
  }
  for (const [typed, completions] of CASES) t.same(complete(typed).sort(), [...completions].sort(), typed.join(' '))
  t.same(complete(['user', 'import', 'a']), ['a file.json'])
  t.same(complete(['event', 'export', '--file', 'a']), ['a file.json'])
})

t.test('fish completes them', skipWithout('fish'), async (t) => {
  const script = await writeScript(t, 'fish')
  for (const [typed, completions] of CASES) {
    const line = ['fastify-identity', ...typed].join(' ')
    const { stdout } = spawnSync('fish', ['-c', `${script}\ncomplete -C '${line}'`], { encoding: 'utf8', env: { ...process.env, HOME: t.testdirName } })
    t.same(stdout.split('\n').filter(Boolean).map((row) => row.split('\t')[0]).sort(), [...completions].sort(), line)
  }
})

t.test('zsh reads its script', skipWithout('zsh'), async (t) => {
  const script = await writeScript(t, 'zsh')
  const { status, stderr } = spawnSync('zsh', ['-f', '-n', '-c', script], { encoding: 'utf8' })
  t.strictSame([status, stderr], [0, ''])
})

t.test('every value with choices is completed from the table', async (t) => {
  t.match((await createCli(t.testdir())('completion bash')).stdout, 'user import --on-conflict' + "') words='skip update fail'")
})
