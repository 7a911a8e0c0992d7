import type { Attachment } from './look.ts'

/** A mail to one person. */
export interface Message {
  /** The value of Message-ID. A retry has the same value, so that mail programs show one mail. */
  id: string
  /** The sender, as `mail.from` configures it. Absent: `send` chooses. */
  from?: string
  /** One address. */
  to: string
  subject: string
  /** The text, and the same as HTML. */
  text: string
  html: string
  /** The logo, to which the HTML refers as `cid:`. Absent without one. */
  attachments?: Attachment[]
}

/**
 * Sends a mail. Resolves when the next server has accepted it. An error with a `responseCode` of 500 or higher is final, as in
 * SMTP. After any other error the mail is tried again.
 */
type Send = (message: Message, options: { signal: AbortSignal }) => Promise<unknown>

/** The transport of mails. */
export interface Mail {
  send: Send
  from?: string
  /** The logo of the mails: the path of a PNG, JPEG or GIF image, or a data URL with base64. Absent: that of the pages, if it is of such a type. */
  logo?: string
  /** Whether mails stay in this process, as in the testing kit. Links may then use the address where the process listens. */
  local?: boolean
}

/** Milliseconds that one attempt may take. */
export const SEND_TIMEOUT = 60_000

/**
 * Whether another attempt would fail too: the server refused this sender, this recipient or this text with a 5xx reply
 * (RFC 5321, 4.2.1). Refused credentials are not final: they are a configuration error, and mails can wait until it is corrected.
 */
export function isFinal (error: unknown): boolean {
  const { responseCode, code } = Object(error) as { responseCode?: unknown, code?: unknown }
  return typeof responseCode === 'number' && responseCode >= 500 && code !== 'EAUTH'
}
