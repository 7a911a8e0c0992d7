import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { unseal } from '../../lib/export/seal.ts'
import type { KeptLine } from '../../schemas/export.ts'
import { createCli } from '../helpers/cli.ts'

const parse = (text: string) => text.trimEnd().split('\n').map((line) => JSON.parse(line) as KeptLine)

t.test('without hashes: lines that any service may read, and nothing that proves who somebody is', async (t) => {
  const cli = createCli(t.testdir())
  await cli('bootstrap --account boss')
  await cli('user create --account ann@example.com --name Ann --role editor --password-stdin', { stdin: 'a password' })
  await cli('user verify-email --account ann@example.com')
  const { stdout } = await cli('user export')
  const [, ann] = parse(stdout)
  t.match(ann, { id: String, account: 'ann@example.com', email: 'ann@example.com', email_verified: true, name: 'Ann', roles: { editor: true }, created_at: String })
  t.notMatch(stdout, /password|kept|format|\$2b\$/)
  t.match((await cli('event list --type users.exported --json')).json(), { data: [{ target: { kind: 'export', id: 'without-hashes' }, actor: { via: 'cli' } }] })
})

t.test('with hashes: only sealed, for the holder of a key', async (t) => {
  const directory = t.testdir()
  const cli = createCli(directory)
  await cli('user create --account ann@example.com --password-stdin', { stdin: 'a password' })
  const identity = await generateX25519Identity()
  const recipient = await identityToRecipient(identity)
  const file = `${directory}/users.age`
  t.match(await cli('user export --with-hashes'), { code: 2, stdout: '', stderr: /--with-hashes: needs --seal-to/ })
  t.match(await cli(`user export --with-hashes --out ${file}`), { code: 2, stderr: /--with-hashes: needs --seal-to/ })
  for (const wrong of ['age1nothing', identity]) {
    const refused = await cli(`user export --with-hashes --seal-to ${wrong} --out ${file}`)
    t.match(refused, { code: 1, stdout: '', stderr: '--seal-to: must be a public key of age' })
    t.notMatch(refused.stderr, wrong)
    t.throws(() => statSync(file), { code: 'ENOENT' }, 'no file is left')
  }
  t.match(await cli(`user export --seal-to ${recipient}`, { terminal: true }), { code: 2, stderr: '--out: is required on a terminal' })
  t.match(await cli('user export --json'), { code: 2, stderr: '--json: needs --out' })
  t.match((await cli(`user export --with-hashes --seal-to ${recipient} --out ${file} --json`)).json(), { file, users: 1, sealed: true, with_hashes: true })
  t.equal(statSync(file).mode & 0o777, 0o600)
  const sealed = readFileSync(file)
  t.notOk(sealed.includes('ann'))
  const [ann] = parse((await buffer(await unseal(Readable.from([sealed]), identity))).toString())
  t.match(ann, { format: 'fastify-identity/user/1', account: 'ann@example.com', password: { hash: /^\w{8}\$2b\$04\$/ }, kept: { modified_at: String } })
  t.match((await cli('event list --type users.exported --json')).json(), { data: [{ target: { id: 'with-hashes' } }] })
})

t.test('a sealed file moves users into another service, with another secret key, and back out the same', async (t) => {
  const directory = t.testdir({ from: {}, to: {} })
  const [from, to] = [createCli(`${directory}/from`), createCli(`${directory}/to`)]
  const identity = await generateX25519Identity()
  const recipient = await identityToRecipient(identity)
  writeFileSync(`${directory}/key.txt`, `# public key: ${recipient}\n${identity}\n`)
  writeFileSync(`${directory}/other.txt`, `${await generateX25519Identity()}\n`)
  await from('bootstrap --account boss')
  await from('user create --account ann@example.com --name Ann --role editor --password-stdin', { stdin: 'a password' })
  await from('user verify-email --account ann@example.com')
  const file = `${directory}/users.age`
  const read = async (cli: typeof from) => {
    await cli(`user export --with-hashes --seal-to ${recipient} --out ${file}`)
    return (await buffer(await unseal(Readable.from([readFileSync(file)]), identity))).toString()
  }
  const text = await read(from)
  const take = `user import ${file} --from fastify-identity --json`
  const failures: [flags: string, message: string | RegExp][] = [
    ['', '--identity: is required, because the file is sealed'],
    [` --identity ${directory}/other.txt`, /the file .*other\.txt: is not the key that the file is sealed for/],
    [` --identity ${directory}/missing.txt`, /there is no file .*missing\.txt/]
  ]
  for (const [flags, message] of failures) t.match(await to(take + flags), { code: 1, stderr: message })
  t.match(await to(`user import ${file} --from ndjson --source old --identity ${directory}/key.txt`), { code: 2, stderr: '--identity: is for --from fastify-identity' })
  const taken = await to(`${take} --identity ${directory}/key.txt`)
  t.match(taken, { code: 1, stderr: '1 line was refused' }, 'the administrator needs a permission')
  const allowed = await to(`${take} --identity ${directory}/key.txt --allow-roles`)
  t.match(allowed.stdout.trimEnd().split('\n').map((line) => JSON.parse(line) as { result: string }).slice(0, 2).map(({ result }) => result), ['created', 'same'])
  t.equal(await read(to), text)
})
