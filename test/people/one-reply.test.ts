import fastify from 'fastify'
import t from 'tap'
import { askCode, startHarness } from '../oidc/harness.ts'

t.test('a password that ends a sign-up in a sign-in is answered once', async (t) => {
  const lines: string[] = []
  const write = (line: string) => { lines.push(line) }
  const harness = await startHarness(t, { signUp: true, app: fastify({ logger: { level: 'warn', stream: { write } } }) })
  const { kit, browser } = harness
  const ann = browser()
  await (await ann.open(askCode(await harness.register(), { prompt: 'create' }).url)).submit({ typed: 'new@example.com' })
  const page = await ann.open((await kit.mails.next({ to: 'new@example.com' })).link!)
  const { left } = await page.submit({ password: 'correct horse battery' })
  t.ok(left?.searchParams.get('code'))
  t.strictSame(lines.filter((line) => line.includes('Reply was already sent')), [])
})
