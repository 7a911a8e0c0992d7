import Fastify from 'fastify'
import identity from '../../index.ts'
import { clientAt } from '../fixture.ts'
import { SECRET_KEY } from '../seed.ts'
import { readOptions, serve } from './serve.ts'

// The service embedded, with webhooks and a client that receives logout tokens. It signs users out while it serves.

/** Milliseconds between two sign-outs, and the number of later sign-ins after which a user is signed out. */
const INTERVAL = 100
const LATER = 100

const WEBHOOKS = 10
const OPERATOR = { user_id: '', isAdmin: true }

const { database } = readOptions<{ database: string }>()
const app = Fastify()
await app.register(identity, { database, secretKey: SECRET_KEY, rateLimit: false, oidc: { signInLimit: false }, outboundHosts: ['127.0.0.1'] })
await app.ready()
const { clients, events, logouts, tokenSessions, webhooks } = app.identity

const signedIn: string[] = []
/** The user who signed in LATER users ago. Their flow is complete, and their next one is far away. */
let due: string | undefined
events.on('sign_in.succeeded', ({ target }) => {
  signedIn.push(target.id)
  if (signedIn.length > LATER) due = signedIn.shift()
})
setInterval(() => {
  if (due !== undefined) tokenSessions.end(due).catch((error: unknown) => { throw error })
  due = undefined
}, INTERVAL)

const calls = {
  /** Gives the webhooks and the client their receiver. */
  async tell ({ port }: { port: number }): Promise<void> {
    const url = `http://127.0.0.1:${port}/`
    for (let number = 0; number < WEBHOOKS; number++) await webhooks.create({ data: { name: `${number}`, url, types: ['*'] } })
    await clients.patch(clientAt(0).clientId, { data: { backchannelLogoutUri: url } }, OPERATOR)
  },

  /** Removes the receiver. Resolves to the number of attempts at the webhooks, at most 100 each, and of pending logouts. */
  async tellNobody (_params: null): Promise<{ attempts: number, waiting: number }> {
    let attempts = 0
    for await (const batch of webhooks.list()) {
      for (const { webhookId } of batch) {
        attempts += (await webhooks.listAttempts(webhookId)).length
        await webhooks.remove(webhookId)
      }
    }
    let waiting = 0
    for await (const batch of logouts.list('due')) waiting += batch.length
    await clients.patch(clientAt(0).clientId, { data: { backchannelLogoutUri: null } }, OPERATOR)
    return { attempts, waiting }
  }
}
export type ReceiverCalls = typeof calls

await serve(app, { calls })
