import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import t from 'tap'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { createMongoDatabase } from '../helpers/mongo-database.ts'
import { createCli } from '../helpers/cli.ts'
import { MONGODB_URL } from '../helpers/mongodb.ts'

for (const engine of ['SQLite', 'MongoDB'] as const) {
  t.test(`a service moves to ${engine}`, { skip: engine === 'MongoDB' && MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
    const dir = t.testdir()
    const from = `sqlite:${join(dir, 'identity.db')}`
    const to = engine === 'SQLite' ? `sqlite:${join(dir, 'other', 'new.db')}` : createMongoDatabase(t, MONGODB_URL!)
    const here = createCli(dir)
    const there = createCli(dir, { DATABASE_URL: to, IDENTITY_DATA_DIR: dir })
    await here('user create --account ann')
    await here('client create --owner ann --name Shop --credentials')
    const csv = (await here('client export --csv -')).stdout

    const { code, stdout, stderr } = await here(['move', '--from', from, '--to', to])
    t.equal(code, 0, stderr)
    const name = to.replace(/\?.*/, '')
    t.match(stdout, /^users +1 {2}\S{43}$/m)
    t.match(stdout, /^clients +1 {2}\S{43}$/m)
    const [, keyId = ''] = /^key_id +(\S+)$/m.exec(stdout) ?? []
    t.match(stdout, `Everything is in ${name}. Start the service there, with the secret key that has the id ${keyId}.\n`)

    t.equal((await there('client export --csv -')).stdout, csv, 'secrets open')
    t.match(await there('user list --json'), { code: 0, stdout: /"ann"/ })
    t.match(await here('user list'), { code: 1, stderr: `it was moved to ${name} on ` })
    t.match(await here(['move', '--from', from, '--to', to]), { code: 1, stderr: `fastify-identity: --from: was moved to ${name} on ` })
    t.match(await here(['move', '--from', to, '--to', from]), { code: 1, stderr: '--to: takes part in another move, to ' })
    t.match(await here(['move', 'withdraw', '--from', from]), { code: 0, stdout: /tokens revoked there are valid here. Use only one of the two/ })
    t.match(await here('user list --json'), { code: 0, stdout: /"ann"/ })
    t.match(await here(['move', 'withdraw', '--from', from]), { code: 1, stderr: '--from: takes part in no move' })
  })
}

t.test('an interrupted move is finished later; nothing starts on either end meanwhile', async (t) => {
  const dir = t.testdir()
  const [from, to] = [`sqlite:${join(dir, 'identity.db')}`, `sqlite:${join(dir, 'new.db')}`]
  const here = createCli(dir)
  await here('user create --account ann')
  const stop = new AbortController()
  const moving = here(['move', '--from', from, '--to', to], { signal: stop.signal })
  // The move creates the target and marks both stores before it checks the signal.
  const poll = setInterval(() => { if (existsSync(join(dir, 'new.db'))) stop.abort() }, 0)
  t.equal((await moving).code, 1)
  clearInterval(poll)
  t.match(await here('user list'), { code: 1, stderr: /it is being moved to sqlite:.*new\.db since .*: wait for `move`, call it again with the same two URLs if it was interrupted, or go on here after `move withdraw`/ })
  t.match(await createCli(dir, { DATABASE_URL: to })('user list'), { code: 1, stderr: /it is the target of an unfinished move from sqlite:/ })
  const { code, stdout } = await here(['move', '--from', from, '--to', '-', '--json'], { stdin: `${to}\n` })
  t.equal(code, 0)
  const { documents, collections } = JSON.parse(stdout) as { documents: number, collections: { collection: string, documents: number }[] }
  t.strictSame(collections.map(({ collection }) => collection), COLLECTIONS.map(({ name }) => name), 'every declared collection')
  t.equal(documents, collections.reduce((sum, { documents }) => sum + documents, 0))
})

t.test('refused moves', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  const [from, to] = [`sqlite:${join(dir, 'identity.db')}`, `sqlite:${join(dir, 'new.db')}`]
  t.match(await run(['move', '--from', from, '--to', to]), { code: 1, stderr: /cannot open .*identity\.db: there is no database/ })
  await run('user create --account ann')
  for (const [args, message] of [
    [['--from', from, '--to', from], /--to: is not empty, there are users/],
    [['--from', from, '--to', 'sqlite::memory:'], /--to: is a store in memory, which cannot be moved/],
    [['--from', from, '--to', 'postgres://u:secret@h'], /unknown scheme 'postgres:'/],
    [['--from', '-', '--to', '-'], /--to: only one of the two can be read from stdin/],
    [['--from', from], /--to: is required/]
  ] as const) {
    const { code, stdout, stderr } = await run(['move', ...args], { stdin: new PassThrough().end() })
    t.match({ code, stdout, stderr }, { code: /only one|is required/.test(message.source) ? 2 : 1, stdout: '', stderr: message })
    t.notMatch(stderr, 'secret')
  }
  t.match(await run('user list'), { code: 0 }, 'nothing is marked')
})
