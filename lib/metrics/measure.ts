import type { SecretEnds } from '../clients/secret-ends.ts'
import type { Clock } from '../clock.ts'
import { COLLECTIONS } from '../store/collections.ts'
import type { Store } from '../store/port.ts'
import type { Passwords } from '../users/passwords.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import type { Outages } from '../work/outage.ts'
import type { watchWork } from '../work/watch.ts'
import type { Meter } from './meter.ts'
import { readBackup } from './read-backup.ts'
import { readDisk } from './read-disk.ts'
import { readOutbox } from './read-outbox.ts'
import { readRelay } from './read-relay.ts'
import { readWebhooks } from './read-webhooks.ts'

interface MeasuredParts {
  store: Store
  now: Clock
  /** Absent: the host has opened the store. */
  database: string | undefined
  outages: Outages
  passwords: Passwords
  webhooks: Pick<Webhooks, 'readBacklog'>
  secretEnds: Pick<SecretEnds, 'count'>
  watching: ReturnType<typeof watchWork>
  /** Whether the former system is left alone. Absent: there is none. */
  isResting?: (() => boolean) | undefined
}

/** Measures what waits, whenever the metrics are read. */
export function measure ({ store, now, database, outages, passwords, webhooks, secretEnds, watching, isResting }: MeasuredParts, meter: Meter): void {
  readDisk(database, meter)
  readBackup(store, database, now, meter)
  readOutbox(store, COLLECTIONS, now, meter)
  readRelay(store, now, meter)
  readWebhooks(webhooks, meter)
  meter.readEach('outages', 'kind', 'Receivers of this kind that do not answer this process.', () => outages.count())
  meter.readEach('work_stalled', 'kind', 'Whether work of this kind is due and stands still in this process: 1 or 0.', watching.read)
  meter.read('hash_queue', 'Password hashes waiting for a thread.', passwords.countWaiting)
  meter.read('client_secrets_expiring', 'Named secrets of clients that expire within 14 days.', secretEnds.count)
  if (isResting !== undefined) {
    meter.read('former_system_resting', 'Whether the old system is left alone because it gave no answer: 1 or 0.', () => Number(isResting()))
  }
}
