import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { runCommandLine } from '../../cli/main.ts'
import { startHarness } from '../oidc/harness.ts'

/** Runs `login` until it has said where to sign in, and then stops it. */
async function login (flags: string[], env: Record<string, string>): Promise<{ code: number, stderr: string }> {
  const controller = new AbortController()
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  stderr.once('data', () => controller.abort())
  const written = text(stderr)
  const code = await runCommandLine(['login', ...flags], env, { stdin: Readable.from([]), stdout, stderr }, controller.signal)
  stderr.end()
  return { code, stderr: await written }
}

async function start (t: Test) {
  const harness = await startHarness(t)
  await harness.kit.app.identity.bootstrap()
  return { ...harness, port: new URL(harness.url).port }
}

t.test('login finds the service by the variables of the service, and prints the link with the code', async (t) => {
  const { url, port, browser } = await start(t)
  for (const [flags, env] of [
    [[], { PORT: port }],
    [[], { PORT: port, HOST: '0.0.0.0' }],
    [[], { IDENTITY_ISSUER: url }],
    [[], { IDENTITY_ISSUER: url, PORT: '0' }],
    // What a server needs is not needed where a person signs in.
    [[], { PORT: port, NODE_ENV: 'production', IDENTITY_SIGN_UP: 'on' }],
    [['--issuer', url], { IDENTITY_ISSUER: 'https://id.example', PORT: 'x' }]
  ] as [string[], Record<string, string>][]) {
    const { stderr } = await login(flags, env)
    const [, place, code, link = ''] = /^Go to (\S+) and enter (\w{4}-\w{4})\nor open (\S+)\n$/.exec(stderr) ?? []
    t.equal(place, `${url}/api/v1/auth/device`, stderr)
    t.equal(link, `${place}?user_code=${code}`)
    if (flags.length > 0) t.match((await browser().open(link)).text, code, 'the page of the link shows the code')
  }
})

t.test('login names the variable that is wrong', async (t) => {
  t.match(await login([], { PORT: 'x' }), { code: 1, stderr: /PORT: must be an integer/ })
  t.match(await login([], { IDENTITY_ISSUER: 'id.example' }), { code: 1, stderr: /IDENTITY_ISSUER: must be an http or https URL/ })
  t.match(await login([], { PORT: '0' }), { code: 2, stderr: /--issuer: is required, as PORT is 0/ })
})
