import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { openStore } from '../../../lib/store/index.ts'

const options = { collections: [], now: Date.now }

t.test('a scheme picks the engine', async (t) => {
  for (const url of ['sqlite::memory:', 'SQLITE::memory:']) {
    const store = await openStore(url, options)
    t.equal(store.engine, 'sqlite')
    await store.close()
  }
})

t.test('the collections of the service are the default', async (t) => {
  const store = await openStore('sqlite::memory:')
  t.teardown(() => store.close())
  t.equal(await store.collection('users').count(), 0)
})

t.test('an unknown scheme is named, and nothing else of the URL', async (t) => {
  for (const [url, scheme] of [
    ['postgres://admin:hunter2@db.example.com/identity', "unknown scheme 'postgres:'"],
    ['mongodb+tcp://admin:hunter2@db.example.com', "unknown scheme 'mongodb+tcp:'"],
    ['//admin:hunter2@db.example.com', 'no scheme'],
    ['data/hunter2.db', 'no scheme'],
    ['', 'no scheme']
  ] as const) {
    const error = await openStore(url, options).then(() => null, (error: Error) => error)
    t.match(error?.message, 'the database URL has', url)
    t.match(error?.message, scheme)
    t.notMatch(error?.message, /hunter2|admin|example/, 'no credentials')
  }
})

t.test('an engine that is not used is not loaded', async (t) => {
  const script = `
    import { registerHooks } from 'node:module'
    const loaded = []
    registerHooks({ resolve (name, context, next) { const found = next(name, context); loaded.push(found.url); return found } })
    const { openStore } = await import(${JSON.stringify(new URL('../../../lib/store/index.ts', import.meta.url))})
    const store = await openStore('sqlite::memory:', { collections: [], now: Date.now })
    await store.close()
    console.log(JSON.stringify(loaded))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  const loaded = JSON.parse(stdout) as string[]
  t.ok(loaded.some((url) => url.includes('/store/sqlite.')), 'the engine in use is')
  t.strictSame(loaded.filter((url) => /\/(?:store\/mongo|node_modules\/mongodb)/.test(url)), [], 'the other and its driver are not')
})
