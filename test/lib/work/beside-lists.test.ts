import t, { type Test } from 'tap'
import { toTimestamp } from '../../../lib/clock.ts'
import { createReads } from '../../../lib/lists/reads.ts'
import { createLogouts } from '../../../lib/logout/logouts.ts'
import { createOutbox } from '../../../lib/mail/outbox.ts'
import { createAuthorizations } from '../../../lib/oidc/authorizations.ts'
import type { Actor } from '../../../lib/roles.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import type { Document } from '../../../lib/store/port.ts'
import { createFile } from '../../oidc/harness.ts'
import { PROMPT, waitUntil, within } from '../../helpers/wait.ts'
import { box, openWebhooks } from '../../helpers/webhooks.ts'
import { SILENT_RECORDER } from '../../helpers/events.ts'

const SECOND = 1_000
const HOUR = 3_600 * SECOND
/** More than a process has cursors for people. */
const DOWNLOADS = 64

/** A store with 300 users, and 64 users who each read a list of them and stop after the first batch. */
async function openDownloads (t: Test) {
  const store = await openStore(createFile(t), { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => store.close())
  const users = store.collection('users')
  for (let number = 0; number < 3; number++) {
    await users.insertMany(Array.from({ length: 100 }, (_, index) => ({ id: `u${number}-${index}`, account: `a${number}-${index}`, epoch: 0 })))
  }
  const download = async (caller: Pick<Actor, 'user_id' | 'isAdmin' | 'signal'>) =>
    (await createReads(store).page(users, { limit: 0 }, ({ id }) => id, { caller })).batches[Symbol.asyncIterator]()
  const gone = new AbortController()
  const begun = new Set<number>()
  const lists = await Promise.all(Array.from({ length: DOWNLOADS }, async (_, number) => {
    const list = await download({ user_id: `user${number}`, isAdmin: false, signal: gone.signal })
    return { list, first: list.next().then(() => { begun.add(number) }, () => {}) }
  }))
  t.teardown(async () => {
    gone.abort()
    for (const { list } of lists) await list.return?.()
  })
  await waitUntil('48 downloads have begun', () => begun.size >= 48)
  return { store, download }
}

/** Does all of the work, which the unread downloads do not hold up. */
async function doAll (work: Record<string, () => Promise<unknown>>): Promise<void> {
  for (const [name, act] of Object.entries(work)) {
    await within(name, act(), PROMPT)
  }
}

t.test('beside 64 unread downloads of 64 users, a webhook, the retry of a mail, a logout token, the feed and an export of an administrator go on', async (t) => {
  const { store, download } = await openDownloads(t)
  const { clock, start, happen, events, recorder, got, errors } = await openWebhooks(t, { store })
  const onError = (error: unknown) => { errors.push(error) }
  const webhooks = start()
  let mails = 0
  const send = async () => { if (++mails === 1) throw Object.assign(new Error('busy'), { responseCode: 450 }) }
  const compose = async () => ({ to: 'ann@example.com', subject: 'A subject', text: 'A text.', html: '<p>A text.</p>' })
  const outbox = createOutbox({ store, now: clock.now, box, recorder: SILENT_RECORDER, mail: { send }, host: () => 'id.example', compose, onError, onFailed: () => {} })
  const sent: string[] = []
  const logouts = createLogouts({
    store,
    now: clock.now,
    recorder,
    authorizations: createAuthorizations(store),
    async fetch ({ body }) {
      sent.push(body)
      return { status: 200, time: 1 }
    },
    report: () => onError,
    onFailed: () => {}
  })
  logouts.attach(async ({ client_id }) => ({ uri: 'https://app.example/', token: client_id }))
  t.teardown(async () => { await Promise.all([outbox.close(), logouts.close()]) })
  await store.collection('clients').insert({
    id: 'app', userId: 'u0-0', epoch: 0, redirectUris: [], scopes: [], backchannelLogoutUri: 'https://app.example/', backchannel: true
  } as Document)
  const ends = { created_at: toTimestamp(clock.now()), expired_at: toTimestamp(clock.now() + HOUR) }
  await store.collection('sign_in_sessions').insert({
    id: 's', uid: 's', user_id: 'u0-0', user_epoch: 0, ...ends, payload: { authorizations: { app: { grantId: 'g' } } }
  } as Document)

  await doAll({
    'a webhook': async () => {
      await webhooks.create({ data: { name: 'A', url: 'https://receiver.example/', types: ['user.created'] } })
      await happen('user.created')
      await webhooks.flush()
      t.equal(got.length, 1)
      t.equal((await Array.fromAsync(webhooks.list())).flat().length, 1)
    },
    'the retry of a mail': async () => {
      await outbox.enqueue({ kind: 'test', to: 'ann@example.com' }, HOUR)
      await outbox.settle()
      clock.advance(10 * 60 * SECOND)
      await outbox.flush()
      t.equal(mails, 2)
    },
    'a logout token': async () => {
      await logouts.enqueueForSession('s')
      await logouts.flush()
      t.equal(sent.length, 1)
    },
    'the feed': async () => { t.equal((await events.read({ after: await events.first(), limit: 100 })).events.length, 2) },
    'an export of an administrator': async () => {
      const list = await download({ user_id: 'admin', isAdmin: true })
      let count = 0
      for (let next = await list.next(); next.done !== true; next = await list.next()) count += next.value.length
      t.equal(count, 300)
    }
  })
  t.strictSame(errors, [])
})
