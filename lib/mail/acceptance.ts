import { hash } from 'node:crypto'
import { type Clock, toTimestamp } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import type { Pending } from '../events/pending.ts'
import { type Notice, findRow } from '../notice.ts'
import { DuplicateKeyError, type Store } from '../store/port.ts'
import { RESTORED } from '../work/failure.ts'
import { toDue } from '../work/record.ts'
import { type DeliveryRecord, KEPT, createContents, nameSharer, toUserField } from './delivery.ts'

/** Milliseconds after its event until which a mail is sent, where its kind does not say it. */
const LIFE = 24 * 60 * 60_000

/** Characters of an id. */
const ID_LENGTH = 32

/** The same id for each time that the mail of an event is accepted. */
const toId = (name: string, index: number): string => hash('sha256', `${name} ${index}`).slice(0, ID_LENGTH)

/**
 * Accepts the mails about changes. It takes the store and the key only: any process accepts them, and those with a mail server send them.
 * None is refused, because their number is that of the changes.
 */
export function createAcceptance ({ store, now, box }: { store: Store, now: Clock, box: SecretBox }) {
  const records = store.collection<DeliveryRecord>('deliveries')
  const contents = createContents(box)
  const listeners = new Set<(record: DeliveryRecord) => void>()

  function toRecord (id: string, { restored, ...notice }: Notice, eventTime: string): DeliveryRecord {
    const time = now()
    const sharer = nameSharer(notice)
    // From its event on: a publication that has stood still, or a restored backup, sends no old news.
    const ends = notice.until === undefined ? Date.parse(eventTime) + (findRow(notice.kind).life ?? LIFE) : Date.parse(notice.until)
    return {
      id,
      kind: notice.kind,
      notice: true,
      ...(sharer !== undefined && { sharer }),
      ...toUserField(notice),
      ...(restored === true ? { state: 'failed', failure: RESTORED } : { state: 'due' }),
      ...toDue(time, time),
      claim: 0,
      attempts: 0,
      ends_at: toTimestamp(ends),
      created_at: toTimestamp(time),
      expired_at: toTimestamp(Math.max(ends, time) + KEPT),
      sealed: contents.seal(id, { notice })
    }
  }

  return {
    /**
     * Stores the mails of an event. It may be called again, also when they were sent meanwhile.
     * @param name of the event: see RelayParts.acceptMails
     */
    async accept (event: Pending, name: string): Promise<void> {
      for (const [index, notice] of (event.notices ?? []).entries()) {
        const record = toRecord(toId(name, index), notice, event.content.time)
        try {
          await records.insert(record)
        } catch (error) {
          if (error instanceof DuplicateKeyError) continue
          throw error
        }
        if (record.state === 'due') for (const listener of listeners) listener(record)
      }
    },

    /** Calls a function with each accepted mail. */
    listen: (listener: (record: DeliveryRecord) => void): void => { listeners.add(listener) }
  }
}

export type Acceptance = ReturnType<typeof createAcceptance>
