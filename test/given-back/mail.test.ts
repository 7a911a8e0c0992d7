import { once } from 'node:events'
import { type AddressInfo, type Socket, createServer } from 'node:net'
import t, { type Test } from 'tap'
import { createSmtp } from '../../lib/mail/smtp.ts'
import { checkRow } from '../helpers/given-back.ts'
import { findFreePort } from '../helpers/port.ts'
import { closed, within } from '../helpers/upstream.ts'

/** Milliseconds after which a call hangs. The time limits of the connection itself are longer. */
const HANG = 3_000

/** How far a mail server goes before it falls silent: its answers to the greeting and to the commands, by their first word. */
const SCRIPTS: Record<string, Record<string, string>> = {
  'never greets': {},
  'greets only': { greeting: '220 mail' },
  'never answers about the sender': { greeting: '220 mail', EHLO: '250 mail' },
  'never answers about the recipient': { greeting: '220 mail', EHLO: '250 mail', MAIL: '250 OK' },
  'never takes the text': { greeting: '220 mail', EHLO: '250 mail', MAIL: '250 OK', RCPT: '250 OK' },
  'never answers to the text': { greeting: '220 mail', EHLO: '250 mail', MAIL: '250 OK', RCPT: '250 OK', DATA: '354 go on' },
  'refuses the recipient': { greeting: '220 mail', EHLO: '250 mail', MAIL: '250 OK', RCPT: '550 unknown', QUIT: '221 bye', RSET: '250 OK' },
  'hangs up': { greeting: '421 later' },
  'takes the mail': { greeting: '220 mail', EHLO: '250 mail', MAIL: '250 OK', RCPT: '250 OK', DATA: '354 go on', '.': '250 taken', QUIT: '221 bye' }
}

/** What sending comes to. A server that falls silent is left by the abort. */
const OUTCOMES: Record<string, unknown> = { 'refuses the recipient': 'EENVELOPE', 'hangs up': 'EPROTOCOL', 'takes the mail': undefined }

/** A mail server that follows a script. `quiet` resolves when it has fallen silent. */
async function serve (t: Test, script: Record<string, string>) {
  const sockets = new Set<Socket>()
  let quiet: () => void = () => {}
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    const say = (word: string) => {
      const answer = script[word]
      if (answer === undefined) return quiet()
      socket.write(`${answer}\r\n`)
      if (/^(221|421)/.test(answer)) socket.end()
    }
    let isText = false
    socket.setEncoding('utf8').on('data', (text: string) => {
      for (const line of text.split('\r\n').slice(0, -1)) {
        if (isText && line !== '.') continue
        say(line.split(/[ :]/)[0]!)
        isText = line === 'DATA'
      }
    })
    say('greeting')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, sockets, nextQuiet: () => new Promise<void>((resolve) => { quiet = resolve }) }
}

const MESSAGE = { id: '<a@id.example>', from: 'id@example.com', to: 'ann@example.com', subject: 'Hello', text: 'Hello', html: '<p>Hello</p>' }

for (const [what, script] of Object.entries(SCRIPTS)) {
  t.test(`a mail server that ${what}: the connection is given back${what in OUTCOMES ? '' : ' when the caller aborts'}`, async (t) => {
    const { port, sockets, nextQuiet } = await serve(t, script)
    const mail = createSmtp(`smtp://127.0.0.1:${port}`, 'id@example.com')
    const isSilent = !(what in OUTCOMES)
    const { signal } = new AbortController()
    const call = async () => {
      const caller = new AbortController()
      const quiet = nextQuiet()
      const sending = mail.send(MESSAGE, { signal: isSilent ? caller.signal : signal }).then(() => undefined)
      if (isSilent) {
        sending.catch(() => {})
        await within('silence', quiet)
        caller.abort()
      }
      await within('the end of sending', sending.finally(async () => await Promise.all([...sockets].map((socket) => closed('a connection', socket)))), HANG)
    }
    await checkRow(t, { call, outcome: isSilent ? /abort/i : OUTCOMES[what], signals: { 'the signal': signal }, sizes: { connections: sockets }, times: 2 })
  })
}

t.test('a mail server that is not there: everything is given back', async (t) => {
  const mail = createSmtp(`smtp://127.0.0.1:${await findFreePort()}`, 'id@example.com')
  const { signal } = new AbortController()
  await checkRow(t, { call: () => mail.send(MESSAGE, { signal }), outcome: 'ESOCKET', signals: { 'the signal': signal }, times: 4 })
})
