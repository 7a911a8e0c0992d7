import { createReadStream, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { gzipSync } from 'node:zlib'
import { Decrypter, generateX25519Identity, identityToRecipient } from 'age-encryption'
import t from 'tap'
import type { ImportReport, ImportVerdict } from '../../schemas/import.ts'
import { createCli } from '../helpers/cli.ts'
import { type Started, serviceEnv, startProgram } from '../helpers/process.ts'
import { startSmtp } from '../helpers/smtp.ts'
import { waitUntil } from '../helpers/wait.ts'

t.setTimeout(300_000)

const fixture = (name: string): string => join(import.meta.dirname, '..', 'fixtures', 'import', name)
const PASSWORD = 'correct horse Bätterie 7'
const HASH = '$2y$05$ZtI9GJGvyScfBttlNkTdq.ljNASWii4/ymByiSf4xb5IvsGcyMzYq'

const line = (id: number, more = {}): string => `${JSON.stringify({ id: `p-${id}`, account: `p${id}@example.com`, password: { hash: HASH }, ...more })}\n`

function readVerdicts (stdout: string): { verdicts: ImportVerdict[], report: ImportReport } {
  const lines = stdout.trim().split('\n').map((text) => JSON.parse(text) as ImportVerdict & { report?: ImportReport })
  return { report: lines.pop()!.report!, verdicts: lines }
}

t.test('a file comes in: verdicts, a report, the same again, and the exit code', async (t) => {
  const cli = createCli(t.testdir())
  const rehearsal = ['user', 'import', fixture('keycloak-users.json'), '--from', 'keycloak', '--dry-run']
  t.match(await cli(rehearsal), { code: 1, stdout: '', stderr: /there is no database/ }, 'a mistyped path is no rehearsal')
  await cli('keys rotate')
  const dry = await cli(rehearsal)
  t.match(dry, { code: 1, stdout: /^5: serviceAccountClientId: is the account of a client[\s\S]*created +4\n[\s\S]*realmRoles 1[\s\S]*Nothing was written\.\n$/, stderr: 'fastify-identity: 1 line was refused\n' })
  t.match((await cli('user list')).stdout, 'none')

  const words = ['user', 'import', '--from', 'keycloak', fixture('keycloak-users.json'), '--issuer', 'google=https://accounts.google.com', '--json']
  const first = await cli(words)
  t.equal(first.code, 1, 'a line was refused')
  const { verdicts, report } = readVerdicts(first.stdout)
  t.strictSame(verdicts.map(({ line, result }) => [line, result]), [[1, 'created'], [2, 'created'], [3, 'created'], [4, 'created'], [5, 'refused']])
  t.match(report, { source: 'keycloak', created: 4, refused: 1, schemes: { argon2: 3 } })
  t.strictSame(readVerdicts((await cli(words)).stdout).verdicts.map(({ result }) => result), ['same', 'same', 'same', 'same', 'refused'])
  t.match((await cli('user show --account dan --json')).json(), { user_id: '6cc627d4-5ccf-4a3c-8d8f-aa3db3e1f5f8', created_at: '2026-11-23T04:30:59.857Z' })
  t.match((await cli('user factors list --account dan')).stdout, /totp/)

  const events = (await cli('event export --file -')).stdout.trim().split('\n').map((text) => JSON.parse(text) as { type: string })
  t.strictSame(events.map(({ type }) => type).filter((type) => type.startsWith('user')), ['user.created', 'user.created', 'user.created', 'user.created', 'users.imported', 'users.imported'])

  const gone = (await cli(['user', 'import', '--withdraw', report.run, '--json'])).json()
  t.strictSame(gone, { run: report.run, removed: 4, kept: 0 })
  t.match((await cli('user list')).stdout, 'none')
})

t.test('every format is read, from a file, from stdin and unpacked', async (t) => {
  const dir = t.testdir()
  writeFileSync(join(dir, 'users.ndjson.gz'), gzipSync(readFileSync(fixture('auth0-users.ndjson'))))
  writeFileSync(join(dir, 'bad.ndjson.gz'), 'not packed')
  writeFileSync(join(dir, 'hash.txt'), 'hash_config {\n  algorithm: SCRYPT,\n  base64_signer_key: jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==,\n  base64_salt_separator: Bw==,\n  rounds: 8,\n  mem_cost: 14,\n}\n')
  const runs: [string[], created: number, refused: number][] = [
    [['--from', 'auth0', join(dir, 'users.ndjson.gz')], 2, 1],
    [['--from', 'firebase', fixture('firebase.json'), '--hash-config', join(dir, 'hash.txt')], 2, 1],
    [['--from', 'django', fixture('django.json'), '--allow-weak'], 8, 0],
    [['--from', 'clerk', fixture('clerk.csv'), '--without-factors'], 2, 1],
    [['--from', 'better-auth', fixture('better-auth.ndjson'), '--without-factors'], 5, 0],
    [['--from', 'csv', '--source', 'shop', fixture('own-table.csv'), '--trust-emails'], 7, 0]
  ]
  for (const [words, created, refused] of runs) {
    const cli = createCli(join(dir, words[1]!))
    const ran = await cli(['user', 'import', ...words, '--json'])
    const { report, verdicts } = readVerdicts(ran.stdout)
    t.strictSame([report.created, report.refused], [created, refused], `${words[1]}: ${JSON.stringify(verdicts)}`)
  }
  const cli = createCli(dir)
  t.match(readVerdicts((await cli('user import - --from ndjson --source old --json', { stdin: line(1) + '\n' + line(2) })).stdout).verdicts, [{ line: 1 }, { line: 3, user_id: 'p-2' }])
  t.match(await cli(['user', 'import', '--from', 'auth0', join(dir, 'bad.ndjson.gz')]), { code: 1, stderr: `the file ${join(dir, 'bad.ndjson.gz')} cannot be read (Z_DATA_ERROR)\n` })
})

t.test('the names of fields of a file write nothing to the terminal but text', async (t) => {
  const cli = createCli(t.testdir())
  const { stdout } = await cli('user import - --from ndjson --source old', { stdin: '{"account":"ann","\\u001b[2J\\u202ename":1}\n' })
  t.match(stdout, /^1: \?\[2J\?name: is not a known field$/m)
})

t.test('a person signs in with the password that they had', async (t) => {
  const dir = t.testdir()
  const { openServices } = await import('../../lib/identity.ts')
  const { readConfig } = await import('../../config.ts')
  const cli = createCli(dir)
  await cli(['user', 'import', '--from', 'csv', '--source', 'shop', fixture('own-table.csv')])
  const services = await openServices(readConfig({ DATABASE_URL: `sqlite:${dir}/identity.db`, IDENTITY_BCRYPT_COST: '4' }).services)
  t.teardown(() => services.close())
  for (const number of [1, 4, 7]) {
    t.match(await services.users.verify(`person${number}@example.com`, PASSWORD), { user_id: `person-${number}` })
    t.equal(await services.users.verify(`person${number}@example.com`, 'wrong'), null)
  }
})

t.test('wrong flags are named, and no file is read', async (t) => {
  const dir = t.testdir()
  const cli = createCli(dir)
  const file = fixture('django.json')
  for (const [words, message] of [
    [[], /FILE: is required, or --withdraw/],
    [[file, '--withdraw', 'x'], /FILE: cannot be combined with --withdraw/],
    [[file], /--from: is required: one of auth0/],
    [[file, '--from', 'ldap'], /--from: must be one of auth0/],
    [[file, file, '--from', 'django'], /FILE: is given twice/],
    [[file, '--from', 'csv'], /--source: is required with --from csv/],
    [[file, '--from', 'django', '--source', 'a b'], /--source: must be/],
    [[file, '--from', 'django', '--on-conflict', 'merge'], /--on-conflict: must be one of skip, update, fail/],
    [[file, '--from', 'django', '--issuer', 'google'], /--issuer: must be NAME=URL/],
    [[file, '--from', 'firebase', '--hash-config', join(dir, 'none')], `fastify-identity: there is no file ${join(dir, 'none')}\n`],
    [[file, '--from', 'firebase', '--hash-config', file], /the file .*django\.json: has no base64_signer_key/],
    [[join(dir, 'none'), '--from', 'django'], `fastify-identity: there is no file ${join(dir, 'none')}\n`],
    [[dir, '--from', 'django'], `fastify-identity: the file ${dir} cannot be read (EISDIR)\n`]
  ] as const) {
    const ran = await cli(['user', 'import', ...words])
    t.equal(ran.code, typeof message === 'string' || message.source.startsWith('the file') ? 1 : 2)
    t.match(ran.stderr, message)
  }
  t.match(await cli('user import - --from django', { stdin: Object.assign(Readable.from([]), { isTTY: true }) }), { code: 2, stderr: /FILE: stdin is a terminal/ })
  t.match(await cli('user list extra'), { code: 2, stderr: /an argument without a flag/ }, 'other commands take none')
  t.match((await cli('help user import')).stdout, /\[--file\] FILE/)
})

t.test('an unknown run cannot be withdrawn, and a deleted person comes back with --again', async (t) => {
  const cli = createCli(t.testdir())
  const words = 'user import - --from ndjson --source old --json'
  t.equal((await cli(words, { stdin: line(1) + line(2) })).code, 0)
  t.match(await cli('user import --withdraw none'), { code: 1, stdout: '', stderr: 'fastify-identity: --withdraw: is the name of no run\n' })
  await cli('user delete --account p1@example.com')
  const refused = await cli(words, { stdin: line(1) + line(2) })
  t.match(readVerdicts(refused.stdout).verdicts, [{ result: 'refused', reason: /--again/ }, { result: 'same' }])
  t.match(readVerdicts((await cli(`${words} --again`, { stdin: line(1) + line(2) })).stdout).verdicts, [{ result: 'created', user_id: 'p-1' }, { result: 'same' }])
})

t.test('a stopped run ends after a whole line, and the next one goes on', async (t) => {
  const cli = createCli(t.testdir())
  const stopping = new AbortController()
  const stdin = new PassThrough()
  const running = cli('user import - --from ndjson --source old --json', { stdin, signal: stopping.signal })
  stdin.write(line(1) + line(2) + line(3).slice(0, 20))
  await waitUntil('the last imported user', async () => /p2@/.test((await cli('user list')).stdout))
  stopping.abort()
  const stopped = await running
  t.equal(stopped.code, 1)
  t.match(stopped.stderr, /stopped after a whole line; the same command goes on/)
  t.match(readVerdicts(stopped.stdout), { verdicts: [{ line: 1, result: 'created' }, { line: 2, result: 'created' }], report: { created: 2, refused: 0 } })
  const again = await cli('user import - --from ndjson --source old --json', { stdin: line(1) + line(2) + line(3) })
  t.equal(again.code, 0)
  t.match(readVerdicts(again.stdout).report, { created: 1, same: 2 })
})

t.test('Ctrl-C ends a command that imports after a whole line, from a file and from stdin, and the same command goes on', async (t) => {
  // More verdicts than a pipe holds, so that no run comes to its end while nobody reads them.
  const count = 8_000
  const lines = Array.from({ length: count }, (_, index) => line(index)).join('')
  const interrupt = async (run: Started, pattern: RegExp, signal: NodeJS.Signals) => {
    await run.seen(pattern)
    run.child.stdout!.pause()
    run.child.kill(signal)
    run.child.stdout!.resume()
    return await run.ended
  }
  for (const [from, signal, code] of [['file', 'SIGINT', 130], ['file', 'SIGTERM', 143], ['stdin', 'SIGINT', 130]] as const) {
    const dir = t.testdir({ 'people.ndjson': lines })
    const args = ['user', 'import', from === 'file' ? join(dir, 'people.ndjson') : '-', '--from', 'ndjson', '--source', 'old', '--json']
    const start = () => startProgram(t, 'cli.ts', { args, env: serviceEnv(dir), stdio: ['pipe', 'pipe', 'pipe'] })
    const stopped = start()
    // What is sent stays open: the command does not wait for its end.
    if (from === 'stdin') stopped.child.stdin!.on('error', () => {}).write(lines.slice(0, 5_000 * line(0).length))
    t.equal(await interrupt(stopped, /"line":200,/, signal), code, `${from}, ${signal}`)
    t.match(stopped.stderr(), /stopped after a whole line; the same command goes on/)
    const { verdicts, report } = readVerdicts(stopped.stdout())
    t.ok(report.created >= 200 && report.created < count, `${report.created} were created`)
    t.strictSame([verdicts.length, report.refused], [report.created, 0], 'a verdict for each')
    const again = start()
    again.child.stdin!.on('error', () => {}).end(from === 'stdin' ? lines : undefined)
    t.equal(await interrupt(again, /"result":"created"/, 'SIGINT'), 130)
    const rest = readVerdicts(again.stdout())
    t.equal(rest.verdicts.find(({ result }) => result === 'created')?.line, report.created + 1, 'nobody was lost')
    t.match(rest.report, { same: report.created, refused: 0 })
  }
})

t.test('on a terminal there is a bar on stderr, and refused lines stand alone', async (t) => {
  const dir = t.testdir({ 'people.ndjson': Array.from({ length: 1_500 }, (_, index) => line(index, index === 700 ? { account: '' } : {})).join('') })
  const cli = createCli(dir)
  const ran = await cli(['user', 'import', join(dir, 'people.ndjson'), '--from', 'ndjson', '--source', 'old'], { terminal: true })
  t.match(ran.stderr, /\[#* *\] \d+% {2}\d+ lines, \d+ a second/)
  t.match(stripVTControlCharacters(ran.stdout), /^701: account: .*\nrun +\w+\n/)
  t.equal((await cli(['user', 'import', join(dir, 'people.ndjson'), '--from', 'ndjson', '--source', 'old'])).stderr, 'fastify-identity: 1 line was refused\n')
})

t.test('people of an import without a password are invited by mail', async (t) => {
  const without = createCli(t.testdir())
  t.match(await without('user invite --imported old'), { code: 1, stderr: /--imported: the service has no email/ })
  t.match(await without('user invite --imported old --account ann'), { code: 2, stderr: /ACCOUNT: cannot be combined with --imported/ })
  t.match(await without('user invite'), { code: 2, stderr: /ACCOUNT: is required, or --imported/ })

  const server = await startSmtp(t, { authOptional: true })
  const cli = createCli(join(t.testdirName, 'mail'), {
    IDENTITY_MAIL_URL: `smtp://127.0.0.1:${server.port}`, IDENTITY_MAIL_FROM: 'id@example.com', IDENTITY_ISSUER: 'https://id.example.com', IDENTITY_NAME: 'Example'
  })
  await cli('user import - --from ndjson --source old', { stdin: line(1) + line(2, { password: undefined }) })
  t.strictSame(server.received, [], 'an import sends none')
  t.match(await cli('user invite --imported old --name Ann'), { code: 2, stderr: /--name: cannot be combined with --imported/ })
  t.match((await cli('user invite --imported old --per-minute 6000 --json')).json(), { source: 'old', invited: 1, skipped: 1 })
  t.match(server.received.pop(), { to: 'p2@example.com', text: /\/account\/invitation\?token=/ })
  t.match((await cli('user invite --imported old --json')).json(), { invited: 0, skipped: 2 })
})

t.test('what user export wrote comes in again, and only when that is said', async (t) => {
  const dir = t.testdir()
  const [from, to] = [createCli(join(dir, 'from')), createCli(join(dir, 'to'))]
  await from(['user', 'import', fixture('keycloak-users.json'), '--from', 'keycloak'])
  const identity = await generateX25519Identity()
  const recipient = await identityToRecipient(identity)
  await from(['user', 'export', '--with-hashes', '--seal-to', recipient, '--out', join(dir, 'users.age')])
  const decrypter = new Decrypter()
  decrypter.addIdentity(identity)
  const users = await decrypter.decrypt(readFileSync(join(dir, 'users.age')), 'text')
  t.match(readVerdicts((await to('user import - --from ndjson --source old --json', { stdin: users })).stdout).report, { created: 0, refused: 4 })
  t.match(readVerdicts((await to('user import - --from fastify-identity --json', { stdin: users })).stdout).report, { created: 4, refused: 0 })
  t.match((await to('user factors list --account dan')).stdout, /totp/)
})

t.test('a large file takes little memory', async (t) => {
  const { openFile } = await import('../../cli/import-file.ts')
  const dir = t.testdir({ 'large.txt': Buffer.alloc(8 * 1024 * 1024, 'x') })
  const file = await openFile(join(dir, 'large.txt'), { stdin: createReadStream('/dev/null'), signal: new AbortController().signal })
  t.equal(file.getShare(), 0)
  let size = 0
  for await (const chunk of file.chunks) size = Math.max(size, chunk.length)
  t.ok(size <= 64 * 1024)
  t.equal(file.getShare(), 1)
})
