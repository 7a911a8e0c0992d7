import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'

// In processes of their own: here the other tests have loaded everything.
t.test('without an upstream nothing of it is loaded, and with one the library is not before the first sign-in', async (t) => {
  const list = async (options: string): Promise<{ before: string[], after: string[] }> => {
    const script = `
      import { registerHooks } from 'node:module'
      const loaded = new Set()
      registerHooks({ resolve (name, context, next) { const found = next(name, context); loaded.add(found.url); return found } })
      const list = () => [...loaded].map((url) => /(node_modules\\/openid-client|lib\\/upstreams\\/[\\w-]+|routes\\/upstreams)/.exec(url)?.[1]).filter(Boolean)
      const { startIdentity } = await import(${JSON.stringify(new URL('../../../testing/index.ts', import.meta.url))})
      const kit = await startIdentity(${options})
      const { url } = await kit.listen()
      await fetch(url + '/account/sign-in')
      const before = list()
      await fetch(url + '/api/v1/auth/upstream/test', { redirect: 'manual' })
      console.log(JSON.stringify({ before, after: list() }))
      await kit.close()`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
    return JSON.parse(stdout.trim().split('\n').at(-1)!)
  }
  // What the options and the policy of ways need.
  const small = /lib\/upstreams\/(settings|authority|kinds|policy|removed|failure)$/
  const off = await list('{}')
  t.strictSame(off.before.filter((file) => !small.test(file)), [])
  t.strictSame(off.after.filter((file) => !small.test(file)), [])
  const on = await list('{ upstream: {} }')
  t.notOk(on.before.includes('node_modules/openid-client'))
  t.ok(on.before.includes('lib/upstreams/index'))
  t.ok(on.after.includes('node_modules/openid-client'))
})
