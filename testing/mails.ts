import type { Mail, Message } from '../lib/mail/port.ts'

/** A mail for a test to read. */
export interface TestMail extends Pick<Message, 'id' | 'to' | 'subject' | 'text' | 'html'> {
  /** The link in the mail, and its token. Absent in a notice. */
  link?: string
  token?: string
}

export interface Mails {
  /**
   * Sends all due mails, and removes and returns the earliest one.
   * @param filter.to only mails to this address
   * @throws Error when there is no mail
   */
  next (filter?: { to?: string }): Promise<TestMail>
  /** Sends all due mails, and removes and returns all of them. */
  all (): Promise<TestMail[]>
}

/** The maximum number of stored mails. Beyond it, the oldest is dropped. */
const CAPACITY = 10_000

function toTestMail ({ id, to, subject, text, html }: Message): TestMail {
  const link = /^https?:\/\/\S+$/m.exec(text)?.[0]
  const token = link === undefined ? undefined : URL.parse(link)?.searchParams.get('token') ?? undefined
  return { id, to, subject, text, html, ...(link !== undefined && { link }), ...(token !== undefined && { token }) }
}

/** A mail server in memory. */
export function createTestMails (flush: () => Promise<void>): { mail: Mail, mails: Mails, clear: () => void } {
  let received: TestMail[] = []
  return {
    mail: {
      local: true,
      async send (message) {
        received.push(toTestMail(message))
        if (received.length > CAPACITY) received.shift()
      }
    },
    mails: {
      async next ({ to } = {}) {
        await flush()
        const index = received.findIndex((mail) => to === undefined || mail.to === to.toLowerCase())
        if (index < 0) throw new Error(`no mail${to === undefined ? '' : ` to ${to}`} was sent`)
        return received.splice(index, 1)[0]!
      },
      async all () {
        await flush()
        return received.splice(0)
      }
    },
    clear: () => { received = [] }
  }
}
