import t, { type Test } from 'tap'
import { toTimestamp } from '../../../lib/clock.ts'
import { createLogouts } from '../../../lib/logout/logouts.ts'
import type { LogoutRecord } from '../../../lib/logout/record.ts'
import { createOutbox } from '../../../lib/mail/outbox.ts'
import { box, openWebhooks } from '../../helpers/webhooks.ts'
import { within } from '../../helpers/upstream.ts'

const HOUR = 60 * 60_000

/** Mails, logout tokens and webhooks over one store. Whatever is named `hang` gets no answer. */
async function open (t: Test) {
  const { store, recorder, events, start, setReply, happen, errors } = await openWebhooks(t)
  const hang = new Promise<never>(() => {})
  const done = new Map<string, () => void>()
  let hanging = 0
  async function reach (name: string): Promise<void> {
    if (name.includes('hang')) {
      hanging++
      await hang
    }
    done.get(name)?.()
  }
  const onError = (error: unknown) => { errors.push(error) }
  const mail = createOutbox({
    store,
    now: Date.now,
    box,
    mail: { send: async ({ to }) => await reach(to) },
    host: () => 'identity.example',
    compose: async ({ to }) => ({ to: String(to), subject: '', text: '', html: '' }),
    onError,
    onFailed: () => {}
  })
  const logouts = createLogouts({
    store,
    now: Date.now,
    recorder,
    authorizations: {} as Parameters<typeof createLogouts>[0]['authorizations'],
    async fetch ({ url, signal }) {
      await Promise.race([reach(url), new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(new Error('aborted'))))])
      return { status: 200, time: 1 }
    },
    onError,
    onFailed: () => {}
  })
  logouts.attach(async ({ client_id }) => ({ uri: client_id, token: 'token' }))
  setReply(async ({ url }) => {
    await reach(new URL(url).pathname.slice(1))
    return 204
  })
  const webhooks = start({ now: Date.now })
  webhooks.start()
  const records = store.collection<LogoutRecord>('logouts')
  let count = 0
  const names = {
    async mail (name: string) {
      await mail.enqueue({ kind: 'test', to: name }, HOUR)
    },
    async logout (name: string) {
      const id = `logout ${++count}`
      const [time, later] = [toTimestamp(Date.now()), toTimestamp(Date.now() + HOUR)]
      await records.insert({
        id, user_id: 'ann', client_id: name, uids: ['uid'], state: 'failed', due_at: time, claim: 0, attempts: 0, ends_at: later, created_at: time, expired_at: later
      })
      await logouts.retry(id)
    },
    async webhook (name: string) {
      await webhooks.create({ data: { name, url: `https://hooks.example.com/${name}`, types: ['user.created'] } })
      await happen('user.created', 4)
    }
  }
  return {
    kinds: Object.keys(names) as (keyof typeof names)[],
    queue: async (kind: keyof typeof names, name: string) => await names[kind](name),
    countHanging: () => hanging,
    async reaches (kind: keyof typeof names, name: string) {
      const { promise, resolve } = Promise.withResolvers<void>()
      done.set(name, resolve)
      const begin = performance.now()
      await names[kind](name)
      await within(`${kind} ${name}`, promise)
      return performance.now() - begin
    },
    async publishes () {
      const after = await events.last()
      const begin = performance.now()
      await recorder.insert({ type: 'sign_in.succeeded', id: 'ann' })
      await events.flush()
      if (await events.last() === after) throw new Error('the event was not published')
      return performance.now() - begin
    },
    async close () {
      // Their attempts hang for ever.
      await Promise.race([Promise.all([mail.close(), logouts.close(), webhooks.close()]), new Promise((resolve) => setTimeout(resolve, 10))])
    }
  }
}

/** Attempts of each kind that hang at once, at most: 4 mails, 8 logout tokens, 64 at webhooks. */
const MOST = { mail: 4, logout: 8, webhook: 64 }

t.test('while all slots of one kind of work hang, every other kind goes on within a second', async (t) => {
  for (const full of ['mail', 'logout', 'webhook'] as const) {
    const { kinds, queue, countHanging, reaches, publishes, close } = await open(t)
    const before = kinds.filter((kind) => kind !== full)
    for (let number = 0; number < (full === 'webhook' ? 17 : 2 * MOST[full]); number++) await queue(full, `hang${number}`)
    for (let waits = 0; waits < 500 && countHanging() < MOST[full]; waits++) await new Promise((resolve) => setTimeout(resolve, 10))
    t.equal(countHanging(), MOST[full], `all slots of ${full} hang`)
    for (const kind of before) {
      const time = await reaches(kind, `fast-${kind}`)
      t.ok(time < 1_000, `${kind} beside ${full}: ${time} ms`)
    }
    t.ok(await publishes() < 1_000, `the feed beside ${full}`)
    await close()
  }
})
