import type { WebhookTested } from '../../schemas/webhook.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { busyError } from '../errors.ts'
import { generateId } from '../ids.ts'
import { type Outbound, OutboundError } from '../outbound/fetcher.ts'
import { HEADERS, toTestBody } from './message.ts'
import type { Registry } from './registry.ts'
import type { WebhookSecrets } from './secrets.ts'

/** Concurrent tests of this process. */
const MOST_TESTS = 4

/** Lets operators test a webhook. */
export function createTrials (
  { registry: { requireRecord }, secrets, now, outbound }: {
    registry: Pick<Registry, 'requireRecord'>, secrets: WebhookSecrets, now: Clock, outbound: Pick<Outbound, 'fetch'>
  }
) {
  let tests = 0
  return {
    /**
     * Sends a message of the type `webhook.test` now, also to a disabled webhook, and resolves to the outcome.
     * @throws ErrNotFound, ErrBusy
     */
    async test (webhookId: string, signal?: AbortSignal): Promise<WebhookTested> {
      const record = await requireRecord(webhookId)
      if (tests >= MOST_TESTS) throw busyError('tests of webhooks', 1_000)
      tests++
      const time = now()
      const id = `test_${generateId(time)}`
      const body = toTestBody(id, toTimestamp(time), webhookId)
      const start = performance.now()
      try {
        const { status, time } = await outbound.fetch({ url: record.url, headers: { ...HEADERS, ...secrets.sign(record, { id, body }) }, body, signal })
        return { status, time }
      } catch (error) {
        if (!(error instanceof OutboundError)) throw error
        return { code: error.code, time: Math.round(performance.now() - start) }
      } finally {
        tests--
      }
    }
  }
}
