import { type Clock, toTimestamp } from '../clock.ts'
import type { Change, Collection } from '../store/port.ts'
import type { Timers } from '../timers.ts'
import { LEASE } from './failed-events.ts'
import type { WebhookRecord } from './record.ts'

/** Milliseconds between two writes of the progress. After a crash, events delivered since the last write are delivered again. */
const SAVE_INTERVAL = 1_000

interface HeldLeaseParts {
  webhooks: Collection<WebhookRecord>
  now: Clock
  timers: Timers
  /** The progress to store. */
  toChange: () => Change<WebhookRecord>
  /** Called after a write, as long as the lease is held. */
  onSaved: () => Promise<void>
}

/** The lease of a webhook, which this process renews with the progress of the deliveries. */
export function createHeldLease ({ id, claim }: WebhookRecord, { webhooks, now, timers, toChange, onSaved }: HeldLeaseParts) {
  let savedAt = timers.now()
  let saving: Promise<void> = Promise.resolve()
  let isLost = false

  async function write (leased_until: string): Promise<void> {
    savedAt = timers.now()
    const { set, unset = [] } = toChange()
    if (await webhooks.update(id, { set: { ...set, leased_until }, unset }, { equal: { claim, state: 'on' } }) === null) isLost = true
    else await onSaved()
  }

  return {
    /** Whether another process has leased the webhook, or it was changed, disabled or deleted. */
    isLost: (): boolean => isLost,

    lose (): void { isLost = true },

    /** Reads the webhook, and notices that the lease was lost. */
    async read (): Promise<WebhookRecord | null> {
      const record = await webhooks.get(id)
      if (record?.claim === claim && record.state === 'on') return record
      isLost = true
      return null
    },

    /** Stores the progress. One write follows the other, so that none undoes a later one. */
    async save (leased_until = toTimestamp(now() + LEASE)): Promise<void> {
      saving = saving.catch(() => {}).then(async () => await write(leased_until))
      await saving
    },

    isSaveDue: (): boolean => !isLost && timers.now() - savedAt >= SAVE_INTERVAL
  }
}

export type HeldLease = ReturnType<typeof createHeldLease>
