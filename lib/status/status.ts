import type { Status } from '../../schemas/status.ts'
import { readMessage } from '../failure.ts'
import { readSome } from '../lists/first.ts'
import { findLastBackup } from '../maintenance/last-backup.ts'
import type { HeldCount } from '../upstreams/count-held.ts'
import { readVersion } from '../version.ts'
import { MAX_WEBHOOKS, type WebhookRecord } from '../webhooks/record.ts'
import { type AttentionParts, listAttention } from './attention.ts'
import type { Judged } from './capabilities.ts'
import { judgeNext } from './next-steps.ts'

export interface StatusParts extends AttentionParts {
  judged: Judged
  /** @throws Error that says why this process cannot serve */
  checkReadiness: () => Promise<void>
  /** Absent: the people were not counted. */
  held?: HeldCount | undefined
}

/** The service itself: whether it can serve, what needs attention, and what to set up next. */
export async function readStatus ({ judged, checkReadiness, held, ...parts }: StatusParts): Promise<Status> {
  const { store } = parts
  const reason = await checkReadiness().then(() => undefined, readMessage)
  const [attention, backedUpAt, webhooks] = await Promise.all([
    listAttention(parts, held), findLastBackup(store), readSome(store.collection<WebhookRecord>('webhooks'), { limit: MAX_WEBHOOKS })
  ])
  return {
    version: readVersion(),
    engine: store.engine,
    ready: reason === undefined,
    ...(reason !== undefined && { reason }),
    attention: [...(reason === undefined ? [] : [{ code: 'not_ready' as const, text: `The service is not ready: ${reason}.` }]), ...attention],
    next: judgeNext({ ...judged, backedUpAt, webhooks })
  }
}
