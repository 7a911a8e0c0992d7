import t from 'tap'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import { createSweep } from '../../lib/client-documents/sweep.ts'
import { createLease } from '../../lib/events/lease.ts'
import { createOutbox } from '../../lib/mail/outbox.ts'
import type { ClientRecord } from '../../lib/records/client.ts'
import { createFeed } from '../../lib/events/feed.ts'
import { MOST_APART } from '../../lib/deadline.ts'
import { LEASE } from '../../lib/work/lease.ts'
import { createQueue } from '../../lib/work/queue.ts'
import type { WorkRecord } from '../../lib/work/record.ts'
import { createAttemptLog } from '../../lib/webhooks/attempt-log.ts'
import type { WebhookAttemptsRecord } from '../../lib/webhooks/record.ts'
import { createFailedEvents, toFailedEvent } from '../../lib/webhooks/failed-events.ts'
import { createWebhookSecrets } from '../../lib/webhooks/secrets.ts'
import { build } from '../helpers/build.ts'
import { DAY, HOUR, SECOND, succeeds, sweepExpired, tryLives } from '../helpers/lives.ts'
import { unique } from '../helpers/people.ts'
import { createTimers } from '../helpers/timers.ts'
import { SILENT_RECORDER } from '../helpers/events.ts'

// How long work, events and notices last, and for how long a process that was killed keeps its work from others.

t.test('work, events and notices', async (t) => {
  // A store in memory caches no documents.
  const kit = await build(t, { auditDays: 400, database: `sqlite:${t.testdir()}/identity.db` })
  const { clock } = kit
  const { store, users, clients, tokens, imports } = kit.app.identity
  const onError = (error: unknown) => { t.fail(String(error)) }
  const parts = { store, now: clock.now, onError }
  const countEvents = async (type: string) => (await kit.events.list({ type })).length

  /** Whether a record of the collection has not expired. */
  const isKept = async (name: string) => await store.collection(name).count({ since: { expired_at: new Date(clock.now()).toISOString() } }) > 0

  let performed = 0
  /** A process with a queue. One that is killed keeps its claim, and its timers never run again. */
  const startProcess = (perform: () => Promise<void>) => createQueue<WorkRecord>({
    collection: 'deliveries',
    name: 'piece',
    slots: 4,
    capacity: 100,
    lookahead: 100,
    retries: [HOUR],
    perform,
    isFinal: () => false
  }, { ...parts, timers: createTimers(), onFailed: () => {} })

  const toWork = (): WorkRecord => {
    const [time, end] = [0, DAY].map((later) => new Date(clock.now() + later).toISOString()) as [string, string]
    return { id: unique('work'), state: 'due', due_at: time, claim: 0, attempts: 0, ends_at: end, created_at: time, expired_at: end }
  }

  const openLease = () => createLease({ ...parts, timers: createTimers(), getEnd: () => undefined })
  const secrets = createWebhookSecrets({ box: createSecretBox(generateSecretKey()), now: clock.now })
  const createApp = async () => {
    const { user_id } = await users.create({ data: { account: unique('ann'), password: 'x' } })
    const { clientId } = await clients.create({ data: { redirectUris: [], scopes: [], name: 'app', userId: user_id }, credentials: true }, { user_id, isAdmin: true })
    return { user_id, client_id: clientId }
  }

  /** Adds a secret of a client, and resolves to the number of notices about it since. */
  async function addSecret (expires_in: number): Promise<() => Promise<number>> {
    const before = await countEvents('client.secret_expiring')
    await kit.secret((await createApp()).client_id, { expires_in: expires_in / SECOND })
    return async () => {
      await kit.flush()
      return await countEvents('client.secret_expiring') - before
    }
  }

  const box = createSecretBox(generateSecretKey())
  let sent = 0
  /** A process that sends mails: those that another one accepted and did not come to send. */
  const openOutbox = () => createOutbox({
    ...parts, box, recorder: SILENT_RECORDER, timers: createTimers(), host: () => 'id.example', onFailed: () => {}, mail: { from: 'id@example.com', send: async () => { sent++ } }, compose: async () => ({ to: 'ann@example.com', subject: 's', text: 't', html: 'h' })
  })

  let delivered = 0
  const openFailures = (fail = false) => createFailedEvents({
    isHeld: () => false,
    async perform () {
      if (fail) throw new Error('the receiver is down')
      delivered++
    }
  }, { ...parts, timers: createTimers(), onFailed: () => {} })
  const toFailure = () => toFailedEvent('hook', { id: unique('event'), type: 'user.created' } as never, new Date(clock.now()).toISOString(), { attempts: 1, due_at: new Date(clock.now()).toISOString() })

  const sweep = createSweep({
    store,
    now: clock.now,
    async removeUnused (record, permit) {
      await permit(record)
      return await store.collection('clients').delete(record.id)
    }
  })

  await tryLives(t, { clock, store }, [
    {
      name: 'a mail that nobody came to send',
      life: HOUR,
      async make () {
        const [waiting, before] = [openOutbox(), sent]
        // The process that accepts it never begins to send.
        await waiting.close()
        await waiting.enqueue({ kind: 'reset' }, HOUR)
        return async () => {
          const next = openOutbox()
          await next.flush()
          await next.close()
          return sent > before
        }
      }
    },
    {
      name: 'an event that waits for a webhook',
      life: 400 * DAY,
      async make () {
        const before = delivered
        await openFailures().accept(toFailure())
        return async () => {
          const next = openFailures()
          await next.flush()
          await next.close()
          return delivered > before
        }
      }
    },
    {
      name: 'an event that was given up is kept',
      life: 30 * DAY,
      stored: 'webhook_failures',
      async make () {
        const queue = openFailures(true)
        await queue.accept({ ...toFailure(), attempts: 1_000 })
        await queue.flush()
        await queue.close()
        return async () => await isKept('webhook_failures')
      }
    },
    {
      name: 'a cursor of the feed behind which nothing was read',
      life: 400 * DAY,
      stored: 'events',
      async make () {
        await kit.flush()
        const feed = createFeed({ store })
        const { after } = await feed.read({ after: await feed.last() })
        clock.advance(HOUR)
        await createApp()
        await kit.flush()
        // One of before: what follows it is what expires first.
        return async () => {
          await sweepExpired(store, clock.now())
          return await succeeds(feed.read({ after }), 'ErrGone')
        }
      }
    },
    {
      name: 'the client of a document that nobody uses any more',
      life: 90 * DAY,
      async make () {
        const id = unique('https://agent.example/')
        await store.collection<ClientRecord>('clients').insert({ id, name: 'agent', redirectUris: [], scopes: [], document: { used_at: new Date(clock.now()).toISOString() } } as never)
        return async () => {
          await sweep()
          return await store.collection('clients').get(id) !== null
        }
      }
    },
    {
      name: 'the claim of a process that was killed on a piece of work',
      life: LEASE + MOST_APART,
      async make () {
        const begun = Promise.withResolvers<void>()
        const killed = startProcess(async () => {
          begun.resolve()
          await new Promise(() => {})
        })
        const record = toWork()
        await killed.accept(record)
        killed.release(record)
        await begun.promise
        const before = performed
        const next = startProcess(async () => { performed++ })
        return async () => {
          await next.flush()
          await next.close()
          return performed === before
        }
      }
    },
    {
      name: 'the lease of a process that was killed on the feed of events',
      life: 8 * SECOND + MOST_APART,
      async make () {
        await kit.flush()
        clock.advance(HOUR)
        t.equal(await openLease().hold(), 'new')
        return async () => await openLease().hold() === false
      }
    },
    {
      name: 'an event',
      life: 400 * DAY,
      stored: 'events',
      async make () {
        clock.advance(HOUR)
        await createApp()
        await kit.flush()
        return async () => await isKept('events')
      }
    },
    {
      name: 'the name of a run of an import that has brought in nobody',
      life: 400 * DAY,
      stored: 'events',
      async make () {
        clock.advance(HOUR)
        const { run, verdicts } = await imports.importUsers((async function * () {})(), { source: 'crm' })
        await Array.fromAsync(verdicts)
        await kit.flush()
        return async () => {
          await sweepExpired(store, clock.now())
          return await succeeds(Array.fromAsync(imports.withdraw(run)), 'ErrParam')
        }
      }
    },
    {
      name: 'the attempts of a webhook, after the last one',
      life: 30 * DAY,
      stored: 'webhook_attempts',
      async make () {
        const attempts = store.collection<WebhookAttemptsRecord>('webhook_attempts')
        const log = createAttemptLog('hook', { attempts, now: clock.now })
        log.add({ id: 'a' } as never)
        await log.save()
        return async () => await isKept('webhook_attempts')
      }
    },
    {
      name: 'a replaced secret of a webhook signs',
      life: DAY,
      make () {
        const { sealed } = secrets.rotate('hook', secrets.create('hook').sealed)
        return () => secrets.sign({ id: 'hook', sealed }, { id: 'message', body: '{}' })['webhook-signature']!.split(' ').length === 2
      }
    },
    {
      name: 'no notice of a secret that expires, until 14 days before',
      life: 16 * DAY,
      async make () {
        const countNotices = await addSecret(30 * DAY)
        return async () => await countNotices() === 0
      }
    },
    {
      name: 'no second notice of a secret that expires, until three days before',
      life: 10 * DAY,
      async make () {
        const countNotices = await addSecret(13 * DAY)
        return async () => await countNotices() === 0
      }
    },
    {
      name: 'the tokens of a user who expires',
      life: HOUR,
      async make () {
        const { user_id, client_id } = await createApp()
        const { access_token } = await tokens.mint({ user_id, client_id, ttl: DAY / SECOND })
        await store.collection('users').update(user_id, { set: { expired_at: new Date(clock.now() + HOUR).toISOString() } })
        const isLive = async () => (await kit.inject({ url: '/api/v1/auth/tokeninfo', headers: { authorization: `Bearer ${access_token}` } })).statusCode === 200
        t.ok(await isLive(), 'and it is cached from here on')
        return isLive
      }
    }
  ])
})
