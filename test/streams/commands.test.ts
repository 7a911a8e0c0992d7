import { Readable, Writable } from 'node:stream'
import t from 'tap'
import { runCommandLine } from '../../cli/main.ts'
import { createClientRecord } from '../../lib/records/client.ts'
import { createUserRecord } from '../../lib/records/user.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createCli } from '../helpers/cli.ts'
import { createSource } from '../helpers/turns.ts'
import { waitUntil } from '../helpers/wait.ts'
import '../helpers/plain-threads.ts'

// A command stands still while nobody reads what it prints, and prints all of it once somebody does.

/** Lines of the import, and stored users, each beside a client. */
const LINES = 500
const PEOPLE = 1_500
/** Bytes that may wait for the reader: what stdout keeps, and one batch. */
const MOST_BYTES = 128 * 1024

const toLine = (index: number) => `${JSON.stringify({ id: `p-${index}`, account: `p${index}@example.com`, name: 'n'.repeat(200) })}\n`
const toGroup = (index: number) => Array.from({ length: 10 }, (_, offset) => toLine(index * 10 + offset)).join('')

/** A terminal or a pipe whose reader reads nothing until it is let go. */
function createStalled () {
  const { promise, resolve } = Promise.withResolvers<void>()
  let text = ''
  let writes = 0
  const stream = new Writable({
    highWaterMark: 1024,
    write (chunk: Buffer, _encoding, done) {
      writes++
      void promise.then(() => {
        text += chunk.toString()
        done()
      })
    }
  })
  return { stream, letGo: resolve, hasWritten: () => writes > 0, read: () => text }
}

const dir = t.testdir()
const env = { DATABASE_URL: `sqlite:${dir}/identity.db`, IDENTITY_BCRYPT_COST: '4', IDENTITY_PASSWORD_MIN: '1' }
const cli = createCli(dir)

/** Runs a command whose stdout nobody reads yet. */
function start (words: string, stdin: Readable = Readable.from([])) {
  const { stream, ...stalled } = createStalled()
  const ending = new AbortController()
  const errors: string[] = []
  const stderr = new Writable({
    write (chunk: Buffer, _encoding, done) {
      errors.push(chunk.toString())
      done()
    }
  })
  const streams = { stdin, stdout: Object.assign(stream, { isTTY: false }), stderr: Object.assign(stderr, { isTTY: false }) }
  const seen = { isOver: false }
  const code = runCommandLine(words.split(' '), env, streams, ending.signal)
    .finally(() => { seen.isOver = true })
  return { ...stalled, seen, code, stop: () => { ending.abort() }, errors, countWaiting: () => stream.writableLength }
}

t.before(async () => {
  // The first command that changes something makes the database and its key.
  for (const line of ['user create --account temp', 'user delete --account temp']) t.equal((await cli(line)).code, 0, line)
  const store = await openStore(env.DATABASE_URL, { collections: COLLECTIONS, now: Date.now, onError: (error) => { throw error } })
  const info = { text: 'n'.repeat(200) }
  const users = Array.from({ length: PEOPLE }, (_, index) => createUserRecord(Date.now(), { id: `u${index}`, account: `u${index}`, roles: {}, password: '', name: '', info }))
  const clients = users.map(({ id }) => createClientRecord(Date.now(), { id: `c${id}`, redirectUris: [], scopes: [], name: 'n'.repeat(200) }))
  for (let start = 0; start < PEOPLE; start += 100) {
    await store.collection('users').insertMany(users.slice(start, start + 100))
    await store.collection('clients').insertMany(clients.slice(start, start + 100))
  }
  await store.close()
})

t.test('an import', async (t) => {
  const words = 'user import - --from ndjson --source old --dry-run --json'
  const { seen, batches } = createSource(toGroup, LINES / 10)
  const run = start(words, Readable.from(batches))
  await waitUntil('the first verdicts', run.hasWritten)
  // An import of the same file, which begins later and is read, says how long one takes.
  t.equal((await cli(words, { stdin: Readable.from(createSource(toGroup, LINES / 10).batches) })).code, 0)
  t.ok(seen.taken < LINES / 10, `${seen.taken} pieces of the file are read`)
  t.ok(run.countWaiting() <= MOST_BYTES, `${run.countWaiting()} bytes wait`)
  t.equal(run.seen.isOver, false)
  run.letGo()
  t.equal(await run.code, 0, run.errors.join(''))
  t.equal(run.read().trim().split('\n').length, LINES + 1, 'every verdict, and the report')
})

const LISTS: Record<string, (text: string) => number> = {
  'user export': (text) => text.trim().split('\n').length,
  'client export --csv -': (text) => text.trim().split('\n').length - 1,
  'user list --json --limit 0': (text) => (JSON.parse(text) as { data: unknown[] }).data.length
}

for (const [words, count] of Object.entries(LISTS)) {
  t.test(words, async (t) => {
    const run = start(words)
    await waitUntil('the first piece', run.hasWritten)
    // The same command, which begins later and is read, says how long one takes.
    t.equal((await cli(words)).code, 0)
    const waiting = run.countWaiting()
    t.ok(waiting <= MOST_BYTES, `${waiting} bytes wait`)
    t.equal(run.seen.isOver, false)
    run.letGo()
    t.equal(await run.code, 0, run.errors.join(''))
    t.equal(count(run.read()), PEOPLE)
  })

  t.test(`${words}: a command that is stopped meanwhile ends, and prints no more`, async (t) => {
    const run = start(words)
    await waitUntil('the first piece', run.hasWritten)
    const waiting = run.countWaiting()
    run.stop()
    await run.code
    t.ok(run.countWaiting() <= waiting)
    run.letGo()
  })
}
