import { runFor } from '../events/origin.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Happening } from '../events/types.ts'
import type { DeliveryRecord } from './delivery.ts'

type Delivery = Pick<DeliveryRecord, 'id' | 'kind' | 'user_id' | 'claim' | 'attempts'>

interface MailEventParts {
  recorder: Pick<Recorder, 'insert'>
  onError: (error: unknown) => void
}

/**
 * Records what became of the mails to people who have an account. Their number is bounded by the limits of mails to one mailbox, and by that
 * of changes. No event has an address. Each is recorded before the record of the mail changes, with a key that a repetition after a kill
 * has too, so none is lost or doubled by one.
 */
export function createMailEvents ({ recorder, onError }: MailEventParts) {
  /** A failure to record must not send a mail again. */
  async function insert ({ id, kind, user_id }: Delivery, end: string, happening: Omit<Happening, 'id'>): Promise<void> {
    if (user_id === undefined) return
    // The service sends it, whoever has asked for it.
    await runFor(undefined, async () => await recorder.insert({ ...happening, id, mail: kind, user_id }, [], `mail/${id}/${end}`)).catch(onError)
  }

  return {
    recordSent: async (mail: Delivery): Promise<void> => await insert(mail, 'sent', { type: 'mail.sent' }),

    /** @param failure why, in codes. A retry by an operator begins the attempts anew, and its failure is another event */
    recordFailed: async (mail: Delivery, failure: string): Promise<void> => (
      await insert(mail, `failed/${mail.claim - mail.attempts}`, { type: 'mail.failed', outcome: 'failure', reason: 'mail_failed', failure }))
  }
}
