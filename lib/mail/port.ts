/** A mail to one person. */
export interface Message {
  /** The value of Message-ID. A retry has the same one, so that mail programs show one mail. */
  id: string
  /** The sender, as `mail.from` configures it. Absent: whatever `send` chooses. */
  from?: string
  /** One address. */
  to: string
  subject: string
  /** The text, and the same as minimal HTML. */
  text: string
  html: string
}

/**
 * Sends a mail: resolves when the next server has accepted it. What it throws decides what follows: an error whose
 * `responseCode` is 500 or higher is final, as SMTP's are, and any other leads to another attempt.
 */
export type Send = (message: Message, options: { signal: AbortSignal }) => Promise<unknown>

/** Where mails go. */
export interface Mail {
  send: Send
  from?: string
  /** Whether mails stay in this process, as the testing kit's do. Links may then lead to wherever the process listens. */
  local?: boolean
}

/** Milliseconds that one attempt may take. */
export const SEND_TIMEOUT = 60_000

/**
 * Whether another attempt would end the same way: the server refused this sender, this recipient or this text with a 5xx reply
 * (RFC 5321, 4.2.1). Wrong credentials are a mistake of the configuration, and every mail can wait until it is corrected.
 */
export function isFinal (error: unknown): boolean {
  const { responseCode, code } = error as { responseCode?: unknown, code?: unknown }
  return typeof responseCode === 'number' && responseCode >= 500 && code !== 'EAUTH'
}
