import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'

// In a process of its own: here the other tests have loaded everything.
t.test('no module of TOTP, QR or WebAuthn is loaded before somebody enrols', async (t) => {
  const script = `
    import { registerHooks } from 'node:module'
    const loaded = new Set()
    registerHooks({ resolve (name, context, next) { const found = next(name, context); loaded.add(found.url); return found } })
    const list = () => [...loaded].map((url) => /node_modules\\/(otpauth|uqr|@noble|@simplewebauthn)\\//.exec(url)?.[1]).filter(Boolean)
    const { startIdentity } = await import(${JSON.stringify(new URL('../../../testing/index.ts', import.meta.url))})
    const kit = await startIdentity({ oidc: { issuer: 'http://localhost' } })
    const { identity } = kit.app
    await identity.users.create({ data: { account: 'ann', password: 'correct horse' } })
    const attempt = (fields) => ({ form: new URLSearchParams(fields), turn: {}, limit: async () => {} })
    const { done } = await identity.signIns.submit('a', attempt({ account: 'ann', password: 'correct horse' }))
    await kit.inject({ url: '/account' })
    const before = list()
    const { code } = await kit.totp('ann')
    await identity.signIns.submit('b', attempt({ account: 'ann', password: 'correct horse' }))
    const { done: second } = await identity.signIns.submit('b', attempt({ code: await code() }))
    const between = list()
    const passkey = await kit.passkey('ann')
    const { status } = await passkey.signIn()
    console.log(JSON.stringify({ status, between, acr: [done.strength.acr, second.strength.acr], before, after: list() }))
    await kit.close()`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  const { status, between, acr, before, after } = JSON.parse(stdout.trim().split('\n').at(-1)!) as { status: number, between: string[], acr: string[], before: string[], after: string[] }
  t.strictSame(acr, ['1', 'mfa'])
  t.strictSame(before, [])
  t.ok(between.includes('otpauth'))
  t.notOk(between.some((name) => name === '@simplewebauthn'), 'a page with a passkey loads nothing')
  t.ok(after.includes('@simplewebauthn'))
  t.equal(status, 303)
})
