import { type Clock, toTimestamp } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { IdentityError } from '../errors.ts'
import { generateId } from '../ids.ts'
import { RESTORED } from '../work/failure.ts'
import type { OutageNotes } from '../work/outage.ts'
import { createQueue } from '../work/queue.ts'
import type { Notice } from '../notice.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Store } from '../store/port.ts'
import type { Timers } from '../timers.ts'
import type { Acceptance } from './acceptance.ts'
import { createMailEvents } from './mail-events.ts'
import { type DeliveryRecord, type Draft, type Job, KEPT, createContents, nameSharer, toUserField } from './delivery.ts'
import type { Attachment } from './look.ts'
import { type Mail, type Message, isFinal } from './port.ts'
import { sendInTime } from './send-limit.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/** Milliseconds between a failed attempt and the next one. */
const RETRIES = [1, 5, 30, 120, 360].map((minutes) => minutes * MINUTE)

/** Mails that this process sends concurrently. */
const SLOTS = 5

/** Slots that mails asked for without a sign-in never use. */
const RESERVED = 1

/** The maximum number of due mails, and of failed mails that are kept. What was asked for without a sign-in takes half of the due ones at most. */
const CAPACITY = 10_000

/** A mail with its sender, and with the logo if it shows that. The logo is not stored with each mail. */
export function address ({ user_id: _user_id, ...draft }: NonNullable<Draft>, { from }: Mail, logo: Attachment | undefined): Omit<Message, 'id'> {
  const isShown = logo !== undefined && draft.html.includes(`cid:${logo.cid}`)
  return { ...draft, ...(from !== undefined && { from }), ...(isShown && { attachments: [logo] }) }
}

interface OutboxParts {
  store: Store
  now: Clock
  box: SecretBox
  recorder: Pick<Recorder, 'insert'>
  mail: Mail
  /** The logo, which is attached to the mails that show it. */
  getLogo?: (() => Attachment | undefined) | undefined
  /** The host of Message-IDs. */
  host: () => string
  /** Composes the message of a job. It is called again if it fails, or if the process ends before the message is stored. */
  compose: (job: Job) => Promise<Draft>
  /** Composes a mail about a change, in the same way. `until` is when its link ends, by the life of its kind. Absent with `acceptance`. */
  composeNotice?: ((notice: Notice, until: string) => Promise<Draft>) | undefined
  /** Accepts the mails about changes, which this process then sends. Absent: only those that it finds. */
  acceptance?: Pick<Acceptance, 'listen'> | undefined
  /** Receives failures that no caller waits for. */
  onError: (error: unknown) => void
  onFailed: (delivery: Pick<DeliveryRecord, 'id' | 'kind' | 'attempts'> & { failure: string }) => void
  /** Notes whether the mail server accepts mails. */
  outage?: OutageNotes | undefined
  timers?: Timers
}

/** The stored mail cannot be decrypted with the keys of this process. */
class UnreadableError extends Error {
  readonly code = 'UNREADABLE'
}

/**
 * The durable outbox of mails. A crash between the mail server's answer and the deletion of the record causes one duplicate with
 * the same Message-ID.
 */
export function createOutbox (parts: OutboxParts) {
  const { store, now, box, mail, getLogo, host, compose, composeNotice, acceptance, onError, onFailed, outage, timers } = parts
  const records = store.collection<DeliveryRecord>('deliveries')

  const { seal, open } = createContents(box)
  const { recordSent, recordFailed } = createMailEvents(parts)

  function requireContent (record: DeliveryRecord): ReturnType<typeof open> {
    try {
      return open(record)
    } catch {
      throw new UnreadableError()
    }
  }

  async function send (draft: NonNullable<Draft>, id: string, stopping: AbortSignal): Promise<void> {
    try {
      await sendInTime(stopping, async (signal) => await mail.send({ ...address(draft, mail, getLogo?.()), id: `<${id}@${host()}>` }, { signal }), timers)
      outage?.succeed()
    } catch (error) {
      // A refusal of this mail is no outage.
      if (!stopping.aborted && !isFinal(error)) outage?.fail(error)
      throw error
    }
  }

  async function perform (record: DeliveryRecord, stopping: AbortSignal): Promise<void> {
    const { id, claim } = record
    let content = requireContent(record)
    try {
      if (!('draft' in content)) {
        const draft = 'job' in content ? await compose(content.job) : await composeNotice?.(content.notice, record.ends_at) ?? null
        content = { draft }
        // No match: another process has claimed the mail.
        const set = { sealed: seal(id, content), ...toUserField(draft ?? {}) }
        if (await records.update(id, { set }, { equal: { claim } }) === null) return
      }
      const { draft } = content
      if (draft === null) return
      await send(draft, id, stopping)
      await recordSent({ ...record, ...toUserField(draft) })
    } catch (error) {
      if (!stopping.aborted && error instanceof IdentityError && error.code !== 'ErrDb') onError(new Error('a mail could not be composed', { cause: error }))
      throw error
    }
  }

  const deliveries = createQueue<DeliveryRecord>({
    collection: 'deliveries',
    name: 'mail',
    slots: SLOTS,
    reserved: RESERVED,
    // Networks, and users, take turns. One alone may have all slots.
    lanes: { keys: ['sharer'], slots: SLOTS },
    capacity: CAPACITY,
    isUrgent: ({ asked }) => asked !== true,
    lookahead: CAPACITY / 10,
    retries: RETRIES,
    // With the right to expire when the mail could not be accepted again: not before it has ended.
    toDone: ({ notice, ends_at }, time) => notice === true ? { set: { expired_at: [ends_at, toTimestamp(time + DAY)].sort()[1]! }, unset: ['sealed'] } : null,
    perform,
    beforeFailed: recordFailed,
    isFinal: (error) => error instanceof UnreadableError || isFinal(error),
    // The server may have accepted it: a repetition just after the restart would be a second mail.
    afterAbort: 30_000
  }, { store, now, onError, timers, onFailed: ({ id, kind, attempts }, failure) => onFailed({ id, kind, attempts, failure }) })

  acceptance?.listen(deliveries.release)

  return {
    /**
     * Accepts a mail that somebody asks for. When this resolves, the mail is durable and this process starts to send it.
     * @param life milliseconds after which the mail is not sent any more
     * @param options.network of somebody who asked for it without a sign-in
     * @returns its id
     * @throws ErrBusy when too many mails are due, or too many of this network or user beside those of others
     */
    async enqueue (job: Job, life: number, { network }: { network?: string } = {}): Promise<string> {
      const time = now()
      const sharer = nameSharer(job, network)
      const id = generateId(time)
      const record: DeliveryRecord = {
        id,
        kind: job.kind,
        ...(network !== undefined && { asked: true }),
        ...(sharer !== undefined && { sharer }),
        ...toUserField(job),
        state: 'due',
        due_at: toTimestamp(time),
        claim: 0,
        attempts: 0,
        ends_at: toTimestamp(time + life),
        created_at: toTimestamp(time),
        expired_at: toTimestamp(time + life + KEPT),
        sealed: seal(id, { job })
      }
      await deliveries.accept(record)
      deliveries.release(record)
      return id
    },

    /**
     * To be called before a change in bulk: its mails are accepted however many are due.
     * @throws ErrBusy when too many are
     */
    checkRoom: deliveries.checkRoom,

    start: deliveries.start,
    settle: deliveries.settle,
    flush: deliveries.flush,
    close: deliveries.close,
    findStall: deliveries.findStall,
    countFailed: deliveries.countFailed,
    pace: deliveries.pace,

    /** The mails in this state, the earliest first. */
    async * list (state: DeliveryRecord['state']): AsyncIterable<(DeliveryRecord & { to?: string })[]> {
      for await (const batch of deliveries.list(state)) {
        yield batch.map((record) => {
          try {
            const content = open(record)
            const to = 'draft' in content ? content.draft?.to : 'notice' in content ? content.notice.to : undefined
            return { ...record, ...(to !== undefined && { to }) }
          } catch {
            return record
          }
        })
      }
    },

    /**
     * Makes a failed mail due again.
     * @throws ErrNotFound; ErrParam when its link has ended
     */
    async retry (id: string): Promise<void> {
      const record = await records.get(id)
      if (record?.failure === RESTORED && 'draft' in requireContent(record)) {
        throw new IdentityError('ErrParam', 'id: the mail was composed before the backup was made, and the restore has ended its link')
      }
      deliveries.release(await deliveries.retry(id))
    }
  }
}

export type Outbox = ReturnType<typeof createOutbox>
