import { createHmac, randomBytes } from 'node:crypto'
import { type Clock, toTimestamp } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'

/** Bytes of a secret (Standard Webhooks 1.0: 24 to 64). */
const SECRET_BYTES = 24

/** Milliseconds that a replaced secret still signs. */
const OVERLAP = 24 * 60 * 60_000

/** The most replaced secrets that still sign. A further rotation drops the oldest. */
const MOST_FORMER = 2

export const PREFIX = 'whsec_'

/** The headers of a message (Standard Webhooks 1.0). The signature is a list, with one entry for each secret, which is base64. */
export function signMessage (secrets: readonly string[], { id, body }: { id: string, body: string }, time: number): Record<string, string> {
  const timestamp = String(Math.floor(time / 1000))
  const signatures = secrets.map((one) => createHmac('sha256', Buffer.from(one, 'base64')).update(`${id}.${timestamp}.${body}`).digest('base64'))
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.map((signature) => `v1,${signature}`).join(' ') }
}

interface Content {
  /** As base64. */
  secret: string
  former: { secret: string, ends_at: string }[]
}

/** The context that the secrets of this webhook are sealed with. */
export const toContext = (id: string): string => `webhook ${id}`

/** Creates, rotates and uses the secrets of webhooks. */
export function createWebhookSecrets ({ box, now }: { box: SecretBox, now: Clock }) {
  const generate = () => randomBytes(SECRET_BYTES).toString('base64')
  const seal = (id: string, content: Content) => box.seal(JSON.stringify(content), toContext(id))
  const open = (id: string, sealed: string) => JSON.parse(box.open(sealed, toContext(id))) as Content

  return {
    /** @returns the secret as its receiver needs it, and the sealed form */
    create (id: string): { secret: string, sealed: string } {
      const secret = generate()
      return { secret: PREFIX + secret, sealed: seal(id, { secret, former: [] }) }
    },

    /** Creates a new secret. The former one also signs for one more day. */
    rotate (id: string, sealed: string): { secret: string, sealed: string } {
      const { secret: replaced, former } = open(id, sealed)
      const secret = generate()
      const kept = [{ secret: replaced, ends_at: toTimestamp(now() + OVERLAP) }, ...former].slice(0, MOST_FORMER)
      return { secret: PREFIX + secret, sealed: seal(id, { secret, former: kept }) }
    },

    /** The headers of a message, signed with each signing secret. */
    sign ({ id, sealed }: { id: string, sealed: string }, message: { id: string, body: string }): Record<string, string> {
      const { secret, former } = open(id, sealed)
      const time = now()
      const secrets = [secret, ...former.filter(({ ends_at }) => ends_at > toTimestamp(time)).map((one) => one.secret)]
      return signMessage(secrets, message, time)
    }
  }
}

export type WebhookSecrets = ReturnType<typeof createWebhookSecrets>
