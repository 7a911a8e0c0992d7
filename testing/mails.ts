import { setTimeout as sleep } from 'node:timers/promises'
import { defined } from '../lib/defined.ts'
import type { Mail, Message } from '../lib/mail/port.ts'

/** A mail for a test to read. */
export interface TestMail extends Pick<Message, 'id' | 'to' | 'subject' | 'text' | 'html'> {
  /** The link in the mail, and its token. Absent in a notice. */
  link?: string
  token?: string
}

export interface Mails {
  /**
   * Sends all due mails, and removes and returns the earliest one. If there is none, it waits while events wait to be published.
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
  return defined({ id, to, subject, text, html, link, token })
}

/** Milliseconds that a mail about a change is waited for while its event waits: another process may have the right to publish until it ends. */
const PATIENCE = 15_000
const PAUSE = 50

/**
 * A mail server in memory.
 * @param isWaiting whether an event waits to be published, and the mails about it with it
 */
export function createTestMails (flush: () => Promise<void>, isWaiting: () => Promise<boolean>): { mail: Mail, mails: Mails, clear: () => void } {
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
        for (const end = performance.now() + PATIENCE; ;) {
          await flush()
          const index = received.findIndex((mail) => to === undefined || mail.to === to.toLowerCase())
          if (index >= 0) return received.splice(index, 1)[0]!
          if (performance.now() > end || !await isWaiting()) throw new Error(`no mail${to === undefined ? '' : ` to ${to}`} was sent`)
          await sleep(PAUSE)
        }
      },
      async all () {
        await flush()
        return received.splice(0)
      }
    },
    clear: () => { received = [] }
  }
}
