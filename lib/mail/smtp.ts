import ajvFormats from 'ajv-formats/dist/formats.js'
import { Lazy } from '../lazy.ts'
import type { Mail } from './port.ts'

const email = ajvFormats.fullFormats.email as RegExp

/** Milliseconds for the connection, for the greeting, and without any data. SEND_TIMEOUT limits the whole attempt. */
const CONNECT_TIMEOUT = 15_000
const SILENCE = 30_000

/**
 * A mailbox. Its name has printable characters that need no quotes (RFC 5322, 3.2.3), or it is quoted and has no quotes,
 * backslashes or control characters.
 */
const MAILBOX = /^(?:(?:[\w !#$%&'*+/=?^`{|}~\u00a1-\u{10ffff}-]{1,128}|"[^"\\\p{Cc}]{1,128}") ?<([^<>]+)>|([^<>]+))$/u

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/** The address of a sender: `person@example.com` or `Name <person@example.com>`. Null for anything else. */
export function findSender (from: string): string | null {
  const [, inBrackets, bare] = MAILBOX.exec(from.trim()) ?? []
  const address = inBrackets ?? bare ?? ''
  return address.length <= 254 && email.test(address) ? address : null
}

interface SmtpServer {
  host: string
  port: number
  /** Whether the connection uses TLS from the start. Otherwise STARTTLS is required, except on this machine. */
  secure: boolean
  auth?: { user: string, pass: string }
}

/**
 * Parses the URL of a mail server. `smtp:` means STARTTLS, because without TLS passwords would cross the network in the clear.
 * @throws Error that describes the expected form, without the URL, which contains a password
 */
export function parseMailUrl (text: string): SmtpServer {
  const url = URL.parse(text)
  const isPlain = url !== null && (url.pathname === '' || url.pathname === '/') && url.search === '' && url.hash === ''
  if (url === null || !/^smtps?:$/.test(url.protocol) || url.hostname === '' || !isPlain) {
    throw new Error('must be smtps://USER:PASSWORD@HOST:PORT, or smtp: for STARTTLS')
  }
  const secure = url.protocol === 'smtps:'
  let [user, pass] = [url.username, url.password]
  try {
    [user, pass] = [decodeURIComponent(user), decodeURIComponent(pass)]
  } catch {
    throw new Error('must have a percent-encoded user and password')
  }
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? (secure ? 465 : 587) : Number(url.port),
    secure,
    ...(user !== '' && { auth: { user, pass } })
  }
}

/** Sends by SMTP. nodemailer is loaded with the first mail, because loading takes a quarter of a second and 24 MiB. */
export function createSmtp (url: string, from: string): Mail {
  const { host, port, secure, auth } = parseMailUrl(url)
  const isLocal = LOOPBACK.test(host)
  const transport = new Lazy(async () => {
    const { createTransport } = await import('nodemailer')
    return createTransport({
      host,
      port,
      secure,
      ...(auth && { auth }),
      ...(isLocal ? { ignoreTLS: auth === undefined } : { requireTLS: !secure }),
      connectionTimeout: CONNECT_TIMEOUT,
      greetingTimeout: CONNECT_TIMEOUT,
      dnsTimeout: CONNECT_TIMEOUT,
      socketTimeout: SILENCE,
      disableFileAccess: true,
      disableUrlAccess: true
    })
  })
  return {
    from,
    async send ({ id, attachments = [], ...message }, { signal }) {
      const inline = attachments.map((attachment) => ({ ...attachment, contentDisposition: 'inline' as const }))
      await (await transport.get()).sendMail({ ...message, attachments: inline, messageId: id, headers: { 'Auto-Submitted': 'auto-generated' }, signal })
    }
  }
}
