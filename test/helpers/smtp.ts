import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import PostalMime from 'postal-mime'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerOptions, type SMTPServerSession } from 'smtp-server'

/** A mail that the server accepted. */
export interface Received {
  id: string
  from: string
  to: string
  subject: string
  text: string
  html: string
  /** Only where there are some. */
  attachments?: { cid: string, type: string, disposition: string, size: number }[]
  secure: boolean
  /** The authenticated user. */
  user?: string
}

/** The reply to a recipient: 0 accepts, 'hang' never answers. */
export type Reply = number | 'hang'

/** A mail server on a free loopback port. `reply` decides about each recipient, and gets the number of the attempt. */
export async function startSmtp (t: { teardown: (close: () => unknown) => unknown }, { reply = () => 0, ...options }: SMTPServerOptions & { reply?: (to: string, attempt: number) => Reply } = {}) {
  const received: Received[] = []
  const attempts = new Map<string, number>()
  const arrived: (() => void)[] = []
  async function receive (stream: SMTPServerDataStream, session: SMTPServerSession): Promise<void> {
    const parts: Buffer[] = []
    for await (const part of stream) parts.push(part as Buffer)
    const { messageId = '', from, to, subject = '', text = '', html = '', attachments: files } = await PostalMime.parse(Buffer.concat(parts))
    const attachments = files.map(({ contentId: cid = '', mimeType: type, disposition, content }) => ({ cid, type, disposition: String(disposition), size: (content as ArrayBuffer).byteLength }))
    received.push({ id: messageId, from: from?.address ?? '', to: to?.[0]?.address ?? '', subject, text, html, ...(attachments.length > 0 && { attachments }), secure: session.secure, ...(session.user !== undefined && { user: String(session.user) }) })
    for (const resolve of arrived.splice(0)) resolve()
  }
  const server = new SMTPServer({
    disabledCommands: options.onAuth === undefined ? ['AUTH'] : [],
    closeTimeout: 100,
    ...options,
    onRcptTo ({ address }, _session, done) {
      const attempt = (attempts.get(address) ?? 0) + 1
      attempts.set(address, attempt)
      const answer = reply(address, attempt)
      if (answer === 'hang') return
      if (answer === 0) done()
      else done(Object.assign(new Error(`refused ${address}`), { responseCode: answer }))
    },
    onData (stream, session, done) {
      // Fails when the sender is killed in the middle of the mail.
      receive(stream, session).then(() => done(), done)
    }
  })
  server.on('error', () => {})
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  t.teardown(() => new Promise<void>((resolve) => { server.close(() => resolve()) }))
  return {
    port: (server.server.address() as AddressInfo).port,
    received,
    attempts,
    /** Resolves when the next mail is accepted. */
    arrival: () => new Promise<void>((resolve) => { arrived.push(resolve) })
  }
}
