import type { Attention } from '../../schemas/status.ts'
import type { SecretEnds } from '../clients/secret-ends.ts'
import { defined } from '../defined.ts'
import { readSome } from '../lists/first.ts'
import type { Store } from '../store/port.ts'
import { type HeldCount, describeHeld } from '../upstreams/count-held.ts'
import { MAX_WEBHOOKS, type WebhookRecord } from '../webhooks/record.ts'
import type { WorkName, Works } from '../work/watch.ts'

export interface AttentionParts {
  store: Store
  work: Works
  secretEnds: Pick<SecretEnds, 'count'>
}

/** Each kind of work: what is due, and what was given up. */
const WORK: Readonly<Record<WorkName, { due: string, failed: string }>> = {
  mail: { due: 'Emails are', failed: 'Emails that could not be sent' },
  logout: { due: 'Logout tokens are', failed: 'Logout tokens that no app has taken' },
  webhook: { due: 'Events for webhooks are', failed: 'Events that no webhook has taken' },
  secret: { due: 'Notices of secrets and tokens that end are', failed: 'Notices of secrets and tokens that end, which could not be written' },
  event: { due: 'Events are', failed: 'Records whose events cannot be published' }
}

const NAMES = Object.keys(WORK) as WorkName[]

async function judgeWork (works: Works, name: WorkName): Promise<Attention[]> {
  const { due, failed } = WORK[name]
  const [since, count = 0] = await Promise.all([works[name]?.findStall(), works[name]?.countFailed?.()])
  return [
    ...(since === undefined
      ? []
      : [{ code: `${name}_stalled` as const, text: `${due} due since ${since}, and no process does anything about it.`, since, more: `/jobs?kind=${name}` }]),
    ...(count === 0 ? [] : [{ code: `${name}_failed` as const, text: `${failed}: ${count}.`, count, more: `/jobs?kind=${name}&state=failed` }])
  ]
}

/** Webhooks that the service has stopped, and not an administrator. */
async function judgeWebhooks (store: Store): Promise<Attention[]> {
  const webhooks = await readSome(store.collection<WebhookRecord>('webhooks'), { limit: MAX_WEBHOOKS })
  const stopped = webhooks.filter(({ state, failure }) => state === 'off' && failure !== undefined)
  const since = stopped.map(({ modified_at: at }) => at).sort()[0]
  const count = stopped.length
  return count === 0 ? [] : [defined({ code: 'webhooks_stopped' as const, text: `Webhooks that were stopped, because their receivers failed: ${count}.`, count, since, more: '/webhook/list' })]
}

/** What an operator should look at now. @param held people whom upstreams with `only` hold, if they were counted */
export async function listAttention ({ store, work, secretEnds }: AttentionParts, held: HeldCount | undefined): Promise<Attention[]> {
  const [works, stopped, ending] = await Promise.all([
    Promise.all(NAMES.map(async (name) => await judgeWork(work, name))), judgeWebhooks(store), secretEnds.count()
  ])
  const found = works.flat()
  return [
    ...found.filter(({ count }) => count === undefined),
    ...found.filter(({ count }) => count !== undefined),
    ...stopped,
    ...(ending === 0 ? [] : [{ code: 'credentials_end' as const, text: `Secrets and tokens that end within 14 days: ${ending}.`, count: ending }]),
    ...(held === undefined ? [] : describeHeld(held).map((one) => ({ ...one, text: `Upstreams with ${one.text}.` })))
  ]
}
