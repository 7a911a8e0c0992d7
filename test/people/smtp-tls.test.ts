import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import type { SMTPServerOptions } from 'smtp-server'
import { createCli } from '../helpers/cli.ts'
import { serviceEnv, startProgram } from '../helpers/process.ts'
import { startSmtp } from '../helpers/smtp.ts'

t.setTimeout(150_000)

const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url))
const pem = readFileSync(fixture('tls-mail.pem'), 'utf8')

/** As an operator trusts an authority of their own. */
const TRUST = { NODE_EXTRA_CA_CERTS: fixture('tls-mail-ca.pem') }

const INVITE = ['user', 'invite', '--account', 'ann@example.com']
const TEST = ['mail', 'test', '--to', 'ann@example.com']

/** A mail server with a certificate for localhost, whose one user has the password `wörd`. It counts attempts to sign in. */
async function open (t: Test, options: SMTPServerOptions = {}) {
  let tried = 0
  const dir = t.testdir()
  await createCli(dir)('bootstrap')
  const server = await startSmtp(t, {
    key: pem,
    cert: pem,
    onAuth ({ username, password }, _session, done) {
      tried++
      done(null, username === 'user' && password === 'wörd' ? { user: username } : undefined)
    },
    ...options
  })
  return {
    received: server.received,
    countTried: () => tried,
    /** Runs a command of a service whose mail goes to this URL. */
    async run (args: string[], url: string, env: Record<string, string> = TRUST) {
      const settings = { IDENTITY_MAIL_URL: url.replace('PORT', String(server.port)), IDENTITY_MAIL_FROM: 'id@example.com', IDENTITY_ISSUER: 'https://id.example.com', ...env }
      const command = startProgram(t, 'cli.ts', { args, env: serviceEnv(dir, settings) })
      return { code: await command.ended, stderr: command.stderr() }
    }
  }
}

t.test('a mail goes by STARTTLS and after AUTH to a server whose certificate an authority of the operator has signed', async (t) => {
  const { run, received, countTried } = await open(t)
  t.match(await run(INVITE, 'smtp://user:w%C3%B6rd@localhost:PORT'), { code: 0 })
  t.match(received, [{ to: 'ann@example.com', from: 'id@example.com', text: /invitation\?token=/, secure: true, user: 'user' }])
  t.equal(countTried(), 1)
})

t.test('TLS from the start', async (t) => {
  const { run, received } = await open(t, { secure: true })
  t.match(await run(TEST, 'smtps://user:w%C3%B6rd@localhost:PORT'), { code: 0 })
  t.match(received, [{ to: 'ann@example.com', secure: true, user: 'user' }])
})

t.test('a password that the server refuses sends nothing', async (t) => {
  const { run, received, countTried } = await open(t)
  const { code, stderr } = await run(TEST, 'smtp://user:guess@localhost:PORT')
  t.match([code, stderr], [1, /the email was not sent: .*535/])
  t.notMatch(stderr, 'guess')
  t.ok(countTried() > 0)
  t.same(received, [])
})

for (const [name, url, env, problem] of [
  ['of an authority that the operator did not name', 'smtp://user:w%C3%B6rd@localhost:PORT', {}, /certificate/],
  ['of another name', 'smtp://user:w%C3%B6rd@127.0.0.1:PORT', TRUST, /altname/i]
] as const) {
  t.test(`no password and no mail go to a server with a certificate ${name}`, async (t) => {
    const { run, received, countTried } = await open(t)
    t.match(await run(TEST, url, env), { code: 1, stderr: problem })
    t.equal(countTried(), 0)
    t.same(received, [])
  })
}

// The name of this machine as we do not recognize it, so that the server is one somewhere else.
const ELSEWHERE = 'smtp://LOCALHOST:PORT'

t.test('beyond this machine a server that offers no STARTTLS gets no mail', async (t) => {
  const plain = await open(t, { disabledCommands: ['STARTTLS', 'AUTH'], authOptional: true })
  t.match(await plain.run(TEST, ELSEWHERE), { code: 1, stderr: /STARTTLS|TLS/ })
  t.same(plain.received, [])
})

t.test('beyond this machine a mail goes by STARTTLS, also without AUTH', async (t) => {
  const { run, received } = await open(t, { authOptional: true })
  t.match(await run(TEST, ELSEWHERE), { code: 0 })
  t.match(received, [{ secure: true }])
})
