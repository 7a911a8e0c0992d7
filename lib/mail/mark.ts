import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import type { Document } from '../store/port.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Milliseconds that a mark holds: a mail about a change is sent for a day too. And those after which it is left again. */
const LIFE = 24 * HOUR
const RENEWAL = HOUR

/** Milliseconds that a process without mail relies on what it has read. */
const CACHED = MINUTE

/** A document of the collection `meta`: some process sends mails. */
interface MailMarkRecord extends Document {
  until: string
}

const ID = 'mail'

/**
 * The mark by which a process that sends the mails of all processes tells the others: whichever process decides a change, the mail about it is
 * part of the change.
 * @param isOwn whether this process has a mail server
 */
export function createMailMark ({ store, now, report, isOwn }: Pick<Base, 'store' | 'now' | 'report'> & { isOwn: boolean }) {
  const meta = store.collection<MailMarkRecord>('meta')
  let read: { at: number, until: string } | undefined
  let timer: NodeJS.Timeout | undefined

  const leave = async () => await meta.put({ id: ID, until: toTimestamp(now() + LIFE) }).catch(report('mail'))

  return {
    /** Whether this process or another one sends mails. */
    async isMailed (): Promise<boolean> {
      if (isOwn) return true
      const time = now()
      if (read === undefined || Math.abs(time - read.at) > CACHED) read = { at: time, until: (await meta.get(ID))?.until ?? '' }
      return read.until > toTimestamp(time)
    },

    /** Leaves the mark, and leaves it again every hour until `close`. To be called by a process that sends the mails of all. */
    async start (): Promise<void> {
      if (!isOwn) return
      await leave()
      timer = setInterval(() => { void leave() }, RENEWAL)
      timer.unref()
    },

    close: (): void => { clearInterval(timer) }
  }
}
