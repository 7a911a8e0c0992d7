import t, { type Test } from 'tap'
import { toTimestamp } from '../../../lib/clock.ts'
import { createLogouts } from '../../../lib/logout/logouts.ts'
import type { LogoutRecord } from '../../../lib/logout/record.ts'
import { createOutbox } from '../../../lib/mail/outbox.ts'
import { box, openWebhooks } from '../../helpers/webhooks.ts'
import { PROMPT, waitUntil, within } from '../../helpers/wait.ts'
import { SILENT_RECORDER } from '../../helpers/events.ts'

const HOUR = 60 * 60_000

/** Mails, logout tokens and webhooks over one store. Whatever is named `hang` gets no answer. */
async function open (t: Test) {
  const { store, recorder, events, start, setReply, happen, errors } = await openWebhooks(t)
  const hang = Promise.withResolvers<void>()
  const done = new Map<string, () => void>()
  let hanging = 0
  async function reach (name: string): Promise<void> {
    if (name.includes('hang')) {
      hanging++
      await hang.promise
    }
    done.get(name)?.()
  }
  const onError = (error: unknown) => { errors.push(error) }
  const mail = createOutbox({
    store,
    now: Date.now,
    box,
    recorder: SILENT_RECORDER,
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
    report: () => onError,
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
      await names[kind](name)
      await within(`${kind} ${name}`, promise, PROMPT)
    },
    async publishes () {
      const after = await events.last()
      await recorder.insert({ type: 'sign_in.succeeded', id: 'ann' })
      await within('the publication of an event', events.flush(), PROMPT)
      return await events.last() !== after
    },
    async close () {
      hang.resolve()
      await Promise.all([mail.close(), logouts.close(), webhooks.close()])
    }
  }
}

/** Attempts of each kind that hang at once, at most: 5 mails, 8 logout tokens, 64 at webhooks. */
const MOST = { mail: 5, logout: 8, webhook: 64 }

t.test('while all slots of one kind of work hang, every other kind goes on', async (t) => {
  for (const full of ['mail', 'logout', 'webhook'] as const) {
    const { kinds, queue, countHanging, reaches, publishes, close } = await open(t)
    const before = kinds.filter((kind) => kind !== full)
    for (let number = 0; number < (full === 'webhook' ? 17 : 2 * MOST[full]); number++) await queue(full, `hang${number}`)
    await waitUntil(`all slots of ${full} hang`, () => countHanging() === MOST[full])
    for (const kind of before) {
      await reaches(kind, `fast-${kind}`)
      t.pass(`${kind} beside ${full}`)
    }
    t.ok(await publishes(), `the feed beside ${full}`)
    t.equal(countHanging(), MOST[full], `no more of ${full} has begun`)
    await close()
  }
})
