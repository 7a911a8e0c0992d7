import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Services } from '../lib/identity.ts'

/** A message whose signature was verified. */
export interface TestWebhookMessage {
  /** The id of the event, the same at every attempt. */
  id: string
  type: string
  timestamp: string
  data: { id: string, [field: string]: unknown }
}

export interface TestReceiver {
  readonly webhookId: string
  readonly url: string
  /** The secret that verifies signatures. Set it after a rotation. */
  secret: string
  /** The status of the receiver's responses, initially 204. */
  status: number
  /**
   * Delivers all due events, and removes and returns the earliest message.
   * @param filter.type only messages of this type
   * @throws Error when there is no message
   */
  next (filter?: { type?: string }): Promise<TestWebhookMessage>
  /** Delivers all due events, and removes and returns all messages. */
  all (): Promise<TestWebhookMessage[]>
}

export interface TestWebhooks {
  /** Creates a webhook with a receiver on 127.0.0.1, which verifies and collects messages from then on. */
  receive (options?: { name?: string, types?: string[] }): Promise<TestReceiver>
}

/** The maximum number of stored messages per receiver. Beyond it, the oldest is dropped. */
const CAPACITY = 10_000

/** The maximum difference of a timestamp and the clock in milliseconds, as in the libraries of Standard Webhooks. */
const TOLERANCE = 5 * 60_000

interface Mailbox {
  messages: TestWebhookMessage[]
  receiver: TestReceiver
}

function verify (secret: string, headers: IncomingMessage['headers'], body: string, now: number): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers
  if (typeof signatures !== 'string' || !(Math.abs(Number(timestamp) * 1000 - now) <= TOLERANCE)) return false
  const expected = createHmac('sha256', Buffer.from(secret.replace('whsec_', ''), 'base64')).update(`${String(id)}.${String(timestamp)}.${body}`).digest()
  return signatures.split(' ').some((one) => {
    const given = Buffer.from(one.replace(/^v1,/, ''), 'base64')
    return one.startsWith('v1,') && given.length === expected.length && timingSafeEqual(given, expected)
  })
}

/** Receivers of webhooks. Their server starts with the first one. */
export function createTestWebhooks (getServices: () => Pick<Services, 'webhooks'>, flush: () => Promise<void>, now: () => number) {
  const boxes = new Map<string, Mailbox>()
  let server: Server | undefined

  async function answer (request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const body = Buffer.concat(parts).toString()
    const box = boxes.get(request.url ?? '')
    if (box === undefined || !verify(box.receiver.secret, request.headers, body, now())) {
      response.writeHead(box === undefined ? 404 : 401).end()
      return
    }
    const { status } = box.receiver
    if (status >= 200 && status < 300) box.messages.push({ id: request.headers['webhook-id'], ...JSON.parse(body) })
    if (box.messages.length > CAPACITY) box.messages.shift()
    response.writeHead(status).end()
  }

  async function listen (): Promise<string> {
    if (server === undefined) {
      server = createServer((request, response) => {
        answer(request, response).catch(() => response.destroy())
      }).listen(0, '127.0.0.1')
      await once(server, 'listening')
    }
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  const webhooks: TestWebhooks = {
    async receive ({ name = 'test', types = ['*'] } = {}) {
      const path = `/${boxes.size}`
      const url = await listen() + path
      const { webhookId, secret } = await getServices().webhooks.create({ data: { name, url, types } })
      const messages: TestWebhookMessage[] = []
      const receiver: TestReceiver = {
        webhookId,
        url,
        secret,
        status: 204,
        async next ({ type } = {}) {
          await flush()
          const index = messages.findIndex((message) => type === undefined || message.type === type)
          if (index < 0) throw new Error(`no message${type === undefined ? '' : ` of the type ${type}`} arrived`)
          return messages.splice(index, 1)[0]!
        },
        async all () {
          await flush()
          return messages.splice(0)
        }
      }
      boxes.set(path, { messages, receiver })
      return receiver
    }
  }

  return {
    webhooks,
    clear: () => { for (const { messages } of boxes.values()) messages.length = 0 },
    async close (): Promise<void> {
      server?.closeAllConnections()
      server?.close()
    }
  }
}
