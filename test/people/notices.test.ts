import t from 'tap'
import { createSecretBox } from '../../lib/crypto/secrets.ts'
import { hashToken } from '../../lib/crypto/random-token.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { type DeliveryRecord, type Job, createContents } from '../../lib/mail/delivery.ts'
import { de } from '../../lib/mail/texts/de.ts'
import { en } from '../../lib/mail/texts/en.ts'
import { NOTICES, type NoticeKind, findRow } from '../../lib/notice.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { readDoc } from '../helpers/docs.ts'
import { empty, openProcesses } from '../helpers/mail-processes.ts'
import { settleMails } from '../helpers/mails.ts'
import { parseTable } from '../helpers/table.ts'
import { startIdentity } from '../../testing/index.ts'

const HOUR = 60 * 60_000
const ADMIN = { user_id: 'admin', isAdmin: true }
const OLD = 'ann@example.com'
const NEW = 'new@example.com'

/** What docs/people.md calls the links. */
const LINKS = {
  forgot: 'the page of a forgotten password',
  'sign-in': 'the sign-in',
  client: 'the page of the client',
  tokens: 'the page of the tokens',
  reset: 'new password',
  invite: 'the invitation',
  undo: 'undo',
  enrol: 'set up two-factor authentication'
}

const toLife = (milliseconds: number) => milliseconds % (24 * HOUR) === 0 && milliseconds > 72 * HOUR ? `${milliseconds / (24 * HOUR)} days` : `${milliseconds / HOUR} hours`

t.test('the documentation lists the mails about changes, and each has the values of its texts', async (t) => {
  const listed = parseTable(readDoc('docs/people.md'), 'email', 'when', 'link', 'sent for, and its link works for')
  const kinds = Object.keys(NOTICES) as NoticeKind[]
  t.strictSame(
    listed.map(([kind, , link, life = '']) => [kind, link, life.replace(/[,;].*/, '')]),
    kinds.map((kind) => {
      const { link, life = 24 * HOUR } = findRow(kind)
      return [kind, link === undefined ? '' : LINKS[link], toLife(life)]
    })
  )
  for (const kind of kinds) {
    for (const texts of [en[kind], de[kind]]) {
      const values = Array.from(Object.values(texts as object).join(' ').matchAll(/\{(\w+)\}/g), ([, name = '']) => name).filter((name) => name !== 'service')
      t.strictSame(values.filter((name) => !(findRow(kind).values ?? []).includes(name)), [], kind)
    }
  }
})

t.test('a mail ends a day after its event, and one with a link when that ends', async (t) => {
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS })
  t.teardown(() => store.close())
  const { openOne, listSent, sent } = openProcesses(t, store)
  const deliveries = store.collection<DeliveryRecord>('deliveries')
  for (const [hours, isChanged, isMoved] of [[23, true, true], [25, false, true], [71, false, true], [73, false, false]] as const) {
    await empty(store)
    const before = await openOne({ mail: true })
    const { user_id } = await before.users.create({ data: { account: OLD, password: 'first' } })
    await before.accounts.changeAddress(user_id, NEW)
    await settleMails(before)
    await before.accounts.verifyAddress(/token=([\w-]+)/.exec(sent.pop()!.text)![1]!, user_id)
    await before.users.patch(user_id, { data: { password: 'another' } }, ADMIN)
    await before.close()
    sent.length = 0
    // Nothing was published for so long.
    const later = await openOne({ mail: true, skew: hours * HOUR })
    await settleMails(later)
    await later.close()
    const found = listSent()
    t.equal(found.has(`${NEW}: your password was changed`), isChanged, `${hours} hours later`)
    t.equal(found.has(`${OLD}: your email address was changed`), isMoved, `${hours} hours later, with a link`)
    const ended = (await Array.fromAsync(deliveries.stream({ filter: { equal: { state: 'failed' } } }))).flat().map(({ kind, failure }) => `${kind} ${failure}`)
    t.strictSame(ended.sort(), [...isMoved ? [] : ['address-changed EXPIRED'], ...isChanged ? [] : ['password-changed EXPIRED']], 'the operator sees it')
  }
})

t.test('mails about changes are in no feed, no own data and no log', async (t) => {
  const logged: string[] = []
  const kit = await startIdentity({ t, oidc: { issuer: 'http://localhost:1' } })
  const { users, events, ownData, store } = kit.app.identity
  const { user_id } = await users.create({ data: { account: OLD, password: 'first' } })
  await users.patch(user_id, { data: { email: NEW, password: 'another' } }, ADMIN)
  const stored = JSON.stringify(await store.collection('users').get(user_id))
  t.match(stored, /event_notice:/)
  t.notMatch(stored, /token|"password":"another/)
  for await (const part of await ownData.read(user_id)) logged.push(part)
  await events.flush()
  t.notMatch(JSON.stringify(await store.collection('users').get(user_id)), /event_notice|address-given-up/, 'nothing is left in the record')
  for await (const batch of events.list()) logged.push(JSON.stringify(batch))
  t.match(logged.join('\n'), /user\.password_changed/)
  t.notMatch(logged.join('\n'), /notice|given-up/)
})

t.test('whether there is a mail is decided with the change, by whichever process: one that sends has left a mark', async (t) => {
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS })
  t.teardown(() => store.close())
  const { openOne, listSent } = openProcesses(t, store)
  const change = async (skew: number) => {
    const { users, accounts, events, close } = await openOne({ mail: false, skew })
    const account = `ann${skew}@example.com`
    const { user_id } = await users.create({ data: { account, password: 'first' } })
    await users.patch(user_id, { data: { password: 'another' } }, ADMIN)
    const { link } = await accounts.inviteUser({ account: `new${skew}@example.com` }, ADMIN)
    await events.flush()
    await close()
    return { account, hasLink: link !== undefined }
  }
  t.strictSame(await change(0), { account: 'ann0@example.com', hasLink: true })
  const count = async () => await store.collection('deliveries').count({})
  t.equal(await count(), 0, 'nobody sends')
  await (await openOne({ mail: true })).close()
  t.equal(await store.collection('meta').get('mail'), null, 'a command sends its own mails only')
  await (await openOne({ mail: true, sendsMail: true })).close()
  t.strictSame(await change(1), { account: 'ann1@example.com', hasLink: false })
  t.equal(await count(), 2)
  t.strictSame(await change(25 * HOUR), { account: `ann${25 * HOUR}@example.com`, hasLink: true }, 'nobody has sent for a day')
  const sender = await openOne({ mail: true })
  await settleMails(sender)
  await sender.close()
  t.strictSame([...listSent().keys()].sort(), ['ann1@example.com: your password was changed', 'new1@example.com: you’re invited'])
})

t.test('mails that an earlier release has accepted are sent once, with the links that they bring, unless the change was not made', async (t) => {
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS })
  t.teardown(() => store.close())
  const { openOne, sent, listSent } = openProcesses(t, store)
  const services = await openOne({ mail: true })
  t.teardown(() => services.close())
  const { user_id } = await services.users.create({ data: { account: OLD, password: 'first' } })
  const tokens = { address: 'a'.repeat(43), factor: 'f'.repeat(43) }
  const [time, until] = [toTimestamp(Date.now()), toTimestamp(Date.now() + HOUR)]
  const way = { kind: 'totp', at: time } as const
  await store.collection<UserRecord>('users').update(user_id, {
    set: {
      email: NEW,
      ways: { app: way },
      address_changes: [{ ticket: hashToken(tokens.address), until }],
      first_factors: [{ ticket: hashToken(tokens.factor), until, ways: [] }]
    }
  })
  for (const [purpose, token] of [['undo', tokens.address], ['undo-factor', tokens.factor]] as const) {
    await store.collection('tickets').insert({ id: hashToken(token), purpose, holder: `${purpose} ${user_id}`, user_id, mailed: true, created_at: time, expired_at: until } as never)
  }
  const about = { user_id, to: NEW, time, place: { browser: 'Firefox' } }
  const jobs: Job[] = [
    { kind: 'password-changed', user_id }, { kind: 'address-changed', user_id, to: OLD, token: tokens.address },
    { kind: 'factor-added', ...about, way: 'app', token: tokens.factor, hours: 72 }, { kind: 'factor-added', ...about, way: 'never named' },
    { kind: 'password-removed', ...about }, { kind: 'identity-linked', ...about, way: 'never linked', token: 'x', upstream_name: 'Corp' },
    { kind: 'factor-reset', ...about, token: 'never written' }, { kind: 'deleted', user_id, to: OLD }, { kind: 'recovery-used', ...about, count: 9 }
  ]
  const contents = createContents(createSecretBox(Buffer.alloc(32, 7)))
  for (const [index, job] of jobs.entries()) {
    const id = `earlier${index}`
    await store.collection<DeliveryRecord>('deliveries').insert({
      id, kind: job.kind, state: 'due', due_at: time, claim: 0, attempts: 0, ends_at: until, created_at: time, expired_at: until, sealed: contents.seal(id, { job })
    })
  }
  await settleMails(services)
  t.strictSame([...listSent().keys()].sort(), [
    `${NEW}: a backup code was used`, `${NEW}: two-step verification is on`, `${NEW}: your password was changed`, `${OLD}: your email address was changed`
  ].sort())
  t.equal(await store.collection('deliveries').count({}), 0)
  t.match(sent.find(({ subject }) => subject.includes('two-step verification'))?.text, `/account/undo?token=${tokens.factor}`)
  await services.accounts.undo(tokens.factor)
  t.match(await store.collection<UserRecord>('users').get(user_id), { ways: undefined, password: '' }, 'a live undo of an earlier release undoes')
  t.match(await services.accounts.inspectUndo(tokens.address), { account: OLD, address: OLD })
})
