import type { Services } from '../lib/services.ts'
import { isShownConfidential } from '../lib/clients/show-client.ts'
import type { Client } from '../schemas/client.ts'
import { type Args, UsageError, value } from './args.ts'
import { OPERATOR } from './command.ts'

const DAY = 24 * 60 * 60 * 1000

/** Flags that select clients by their secrets, keys and service tokens, and by uses. */
export const SECRET_FLAGS = {
  'expires-within': value('DAYS', 'Only clients with a secret or service token that ends within these days, such as 30d.'),
  'unused-since': value(
    'DAYS',
    'Only clients without a use within these days, such as 90d: of clients that authenticate, no secret, key or service token was used or added; with a document, nobody signed in. Uses are known from layout 5 on.'
  )
} as const

/** Milliseconds of a number of days, such as 30d. */
function readDays (args: Args, flag: keyof typeof SECRET_FLAGS): number | undefined {
  const text = args.optional(flag)
  if (text === undefined) return undefined
  const days = /^(\d{1,4})d$/.exec(text)?.[1]
  if (days === undefined) throw new UsageError(`--${flag}: must be a number of days, such as 30d`)
  return Number(days) * DAY
}

/** Whether a secret, key or token was used or added since a time. */
const isUsed = (since: string) => ({ createdAt = '', lastUsedAt = createdAt }: { createdAt?: string, lastUsedAt?: string }): boolean => lastUsedAt >= since

/** Reads the flags. Undefined without any; otherwise a function that selects clients. */
export function readSecretFilter (
  args: Args, { clients, serviceTokens }: Pick<Services, 'clients' | 'serviceTokens'>, now: number
): ((client: Client) => Promise<boolean>) | undefined {
  const [ahead, past] = [readDays(args, 'expires-within'), readDays(args, 'unused-since')]
  if (ahead === undefined && past === undefined) return undefined
  const toTime = (time: number) => new Date(time).toISOString()
  const hasKeyUse = async ({ clientId, jwks }: Client, since: string) => jwks !== undefined && (await clients.listKeys(clientId, OPERATOR)).some(isUsed(since))
  return async (client) => {
    const { clientId, createdAt, document } = client
    const held = [...(await clients.listSecrets(clientId, OPERATOR)).secrets, ...await serviceTokens.list(clientId, OPERATOR)]
    const ends = ahead === undefined || held.some(({ expiresAt = '' }) => expiresAt > toTime(now) && expiresAt <= toTime(now + ahead))
    if (past === undefined || !ends) return ends
    const since = toTime(now - past)
    // No use of a public client is known, unless its document tells.
    if (!isShownConfidential(client) && document === undefined) return false
    const isLive = createdAt >= since || (document?.used_at ?? '') >= since || held.some(isUsed(since))
    return !isLive && !await hasKeyUse(client, since)
  }
}

/** The clients that a function selects, at most `limit` of them; 0: all. */
export async function * filterClients (
  batches: AsyncIterable<Client[]>, isWanted: (client: Client) => Promise<boolean>, limit: number
): AsyncGenerator<Client[]> {
  let left = limit === 0 ? Infinity : limit
  for await (const batch of batches) {
    const wanted: Client[] = []
    for (const client of batch) {
      if (left === 0) break
      if (!await isWanted(client)) continue
      wanted.push(client)
      left--
    }
    if (wanted.length > 0) yield wanted
    if (left === 0) return
  }
}
