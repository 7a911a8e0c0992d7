import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { toTimestamp } from '../../lib/clock.ts'
import { hashToken } from '../../lib/crypto/random-token.ts'
import type { DeliveryRecord } from '../../lib/mail/delivery.ts'
import { groupNetwork } from '../../lib/throttling/networks.ts'
import type { TestKit } from '../../testing/index.ts'
import { type Build, build, forEachStore } from '../helpers/build.ts'
import { withoutIds } from '../oidc/browser.ts'
import { callAs, createUser, signIn, unique } from '../helpers/people.ts'
import { waitUntil } from '../helpers/wait.ts'

const HOUR = 3_600_000
const LIMIT = { status: 429, headers: { 'retry-after': '3600' }, body: { code: 'ErrLimit' } }

const toAddress = (name: string) => `${unique(name)}@example.com`

async function start (t: Test, build: Build) {
  const kit = await build(t, { signUp: true })
  const admin = await signIn(kit, { roles: ['admin'], ttl: 100_000 })
  /** Asks without a sign-in. */
  const ask = async (path: '/auth/forgot' | '/auth/sign-up', typed: string, remoteAddress = '198.51.100.7') =>
    await callAs(kit).send({ method: 'POST', url: path, payload: { data: path === '/auth/forgot' ? { account: typed } : { email: typed } }, remoteAddress })
  const countMails = async (to: string) => (await kit.mails.all()).filter((mail) => mail.to === to).length
  return { kit, admin, ask, countMails, person: async () => await createPerson(kit, admin) }
}

/** A user with an address, and a token for their own account. */
async function createPerson (kit: TestKit, admin: Awaited<ReturnType<typeof signIn>>) {
  const account = toAddress('ann')
  const user_id = await createUser(admin, { account, password: 'the first password' })
  return { ...await signIn(kit, { user: user_id, ttl: 100_000 }), account, user_id }
}

t.test('what strangers ask for keeps neither an invitation nor a recovery, nor the requests of the user, from being mailed', async (t) => {
  await forEachStore(t, async (t, build) => {
    const { kit, admin, ask, countMails } = await start(t, build)
    const newhire = toAddress('newhire')
    for (let count = 0; count < 5; count++) t.equal((await ask('/auth/forgot', newhire)).status, 204)
    t.equal(await countMails(newhire), 0, 'there is no such account')
    t.equal((await ask('/auth/sign-up', newhire, '203.0.113.5')).status, 204)
    t.equal(await countMails(newhire), 1, 'their own sign-up is mailed')
    const invited = await admin.post<{ data: { user_id: string } }>('/user/invite', { data: { account: newhire } })
    t.equal(invited.status, 200)
    t.match(await kit.mails.next({ to: newhire }), { link: /\/account\/invitation\?token=/ })

    for (const address of ['198.51.100.7', '198.51.100.8', '198.51.100.9', '198.51.100.10', '198.51.100.11']) {
      for (let count = 0; count < 5; count++) t.equal((await ask('/auth/forgot', newhire, address)).status, 204)
    }
    await kit.mails.all()
    // The newest links stay.
    kit.clock.advance(1)
    t.match(await admin.post(`/user/${invited.body.data.user_id}/recovery`), { status: 200, body: { data: { sent: true } } })
    const { token } = await kit.mails.next({ to: newhire })
    for (let count = 0; count < 4; count++) await ask('/auth/forgot', newhire, `203.0.113.${count}`)
    t.equal(await countMails(newhire), 0, 'strangers have used up theirs')
    t.equal((await callAs(kit).post('/auth/reset', { data: { token, password: 'the second password' } })).status, 204, 'and no request of theirs ended the link')
    const user = await signIn(kit, { user: invited.body.data.user_id })
    t.equal((await user.post('/user/email', { data: { email: toAddress('other'), current_password: 'the second password' } })).status, 204, 'the user changes the address')
  })
})

t.test('mails that one network asks for leave room for those of others', async (t) => {
  await forEachStore(t, async (t, build) => {
    const { kit, ask } = await start(t, build)
    const records = kit.app.identity.store.collection<DeliveryRecord>('deliveries')
    t.equal((await ask('/auth/forgot', toAddress('ann'), '2001:db8:1:1::1')).status, 204)
    const due = toTimestamp(kit.clock.now() + HOUR)
    const sharer = `network ${hashToken(groupNetwork('2001:db8:1:2::1'))}`
    for (let batch = 0; batch < 25; batch++) {
      await Promise.all(Array.from({ length: 100 }, async (_each, index) => await records.insert({
        id: `waiting-${batch}-${index}`, kind: 'forgot', asked: true, sharer, sealed: '', state: 'due', due_at: due, set_at: toTimestamp(kit.clock.now()), claim: 0, attempts: 0, ends_at: due, created_at: due, expired_at: due
      })))
    }
    // Counts are read once a second, and the network may ask thirty times.
    await waitUntil('the room is counted', async () => (await sleep(250, true)) && (await ask('/auth/forgot', toAddress('ann'), '2001:db8:1:3::1')).status === 503)
    t.equal((await ask('/auth/sign-up', toAddress('bob'), '198.51.100.1')).status, 204)
    t.equal((await ask('/auth/forgot', toAddress('bob'), '2001:db8:2:1::1')).status, 204)
  })
})

t.test('requests without a sign-in end no link that an administrator has handed over', async (t) => {
  const { kit, admin, ask } = await start(t, build)
  const account = unique('nameless')
  const { body } = await admin.post<{ data: { link: string } }>(`/user/${await createUser(admin, { account })}/recovery`)
  for (let count = 0; count < 10; count++) t.equal((await ask('/auth/forgot', account)).status, 204)
  await kit.flush()
  const token = new URL(body.data.link).searchParams.get('token')
  t.equal((await callAs(kit).post('/auth/reset', { data: { token, password: 'the second password' } })).status, 204)
})

t.test('without a sign-in, five mails an hour go to one mailbox by each network, and twenty in all', async (t) => {
  const { kit, ask, countMails, person } = await start(t, build)
  const { account } = await person()
  for (const path of ['/auth/forgot', '/auth/sign-up'] as const) {
    for (let count = 0; count < 4; count++) t.equal((await ask(path, count % 2 === 0 ? account : account.toUpperCase())).status, 204)
  }
  t.equal(await countMails(account), 5, 'both kinds count together, in any case of the name')
  for (let count = 0; count < 8; count++) await ask('/auth/forgot', account, `2001:db8:7:${count}::1`)
  t.equal(await countMails(account), 5, 'a /48 is one network')
  for (let count = 0; count < 12; count++) await ask('/auth/forgot', account, `203.0.113.${count}`)
  t.equal(await countMails(account), 10)
  const other = toAddress('new')
  for (let count = 0; count < 25; count++) await ask('/auth/sign-up', other, `203.0.113.${count}`)
  t.equal(await countMails(other), 20, 'of mailboxes without an account too')
  kit.clock.advance(HOUR)
  for (let count = 0; count < 6; count++) await ask('/auth/forgot', account)
  t.equal(await countMails(account), 5, 'an hour later')
})

t.test('existing and unknown addresses get the same answers, beyond the limits too', async (t) => {
  const { kit, ask, admin } = await start(t, build)
  /** The answer, without its date and the secret of the browser. */
  const read = (reply: Awaited<ReturnType<typeof kit.inject>>, typed: string) => JSON.stringify([reply.statusCode, { ...reply.headers, date: '', 'set-cookie': String(reply.headers['set-cookie']).replace(/=[\w-]{43};/, '=;') }, withoutIds(reply.body).replaceAll(typed, 'TYPED')])
  const form = async (path: string, typed: string, remoteAddress: string) => await kit.inject({
    method: 'POST', url: path, payload: new URLSearchParams({ typed }).toString(), remoteAddress, headers: { 'content-type': 'application/x-www-form-urlencoded' }
  })
  const paths = ['/auth/forgot', '/auth/sign-up', '/account/forgot', '/account/sign-up']
  const answers: Record<string, Set<string>> = {}
  for (let pair = 0; pair < 90; pair++) {
    const index = String(pair).padStart(2, '0')
    const [known, unknown] = [`known-${index}@example.com`, `other-${index}@example.com`]
    await createUser(admin, { account: known })
    const path = paths[pair % 4]!
    for (let count = 0; count < 6; count++) {
      for (const typed of [known, unknown]) {
        const remoteAddress = `203.0.${pair}.${typed === known ? 1 : 2}`
        if (path.startsWith('/account')) (answers[path] ??= new Set()).add(read(await form(path, typed, remoteAddress), typed))
        else {
          const { status, headers, body } = await ask(path as '/auth/forgot', typed, remoteAddress)
          ;(answers[path] ??= new Set()).add(JSON.stringify([status, { ...headers, date: '' }, body]))
        }
      }
    }
    await kit.flush()
  }
  for (const path of paths) t.equal(answers[path]?.size, 1, `${path}: ${[...answers[path] ?? []].join('\n')}`)
  const mails = await kit.mails.all()
  const count = (to: string) => mails.filter((mail) => mail.to === to).length
  t.strictSame([count('known-00@example.com'), count('known-01@example.com'), count('other-00@example.com'), count('other-01@example.com')], [5, 5, 0, 5])
})

t.test('a user asks five times an hour about their own account, whether or not a mail is sent', async (t) => {
  const { kit, person, countMails, ask } = await start(t, build)
  const [ann, bob] = [await person(), await person()]
  const change = async (who: typeof ann, email: string) => await who.post('/user/email', { data: { email, current_password: 'the first password' } })
  for (let count = 0; count < 2; count++) t.equal((await ann.post('/auth/verify/send')).status, 204)
  const fresh = toAddress('fresh')
  t.equal((await change(ann, fresh)).status, 204)
  for (let count = 0; count < 2; count++) t.equal((await change(ann, bob.account)).status, 204)
  t.match(await change(ann, bob.account), LIMIT, 'a mailbox of somebody else')
  t.match(await change(ann, fresh), LIMIT, 'and one of nobody answer alike')
  t.match(await ann.post('/auth/verify/send'), LIMIT)
  t.equal(await countMails(bob.account), 0)
  t.equal((await bob.post('/auth/verify/send')).status, 204, 'others have their own count')
  t.equal((await ask('/auth/forgot', ann.account)).status, 204)
  t.match(await kit.mails.all(), [{ to: bob.account }, { to: ann.account }], 'a forgotten password is counted apart')
  kit.clock.advance(HOUR)
  t.equal((await ann.post('/auth/verify/send')).status, 204)
})

t.test('all users together ask twenty times an hour for one mailbox', async (t) => {
  const { person } = await start(t, build)
  const victim = toAddress('victim')
  const statuses: number[] = []
  for (let count = 0; count < 5; count++) {
    const { post } = await person()
    for (let made = 0; made < 5; made++) statuses.push((await post('/user/email', { data: { email: victim, current_password: 'the first password' } })).status)
  }
  t.strictSame(statuses, [...Array<number>(20).fill(204), ...Array<number>(5).fill(429)])
})

t.test('administrators and managers have twenty mails an hour to one person; a refused one writes nothing', async (t) => {
  const { kit, admin, countMails, person } = await start(t, build)
  const { account, user_id } = await person()
  const manager = await signIn(kit, { roles: ['manager'], ttl: 100_000 })
  for (let count = 0; count < 20; count++) t.equal((await (count % 2 === 0 ? admin : manager).post(`/user/${user_id}/recovery`)).status, 200)
  t.match(await admin.post(`/user/${user_id}/recovery`), LIMIT)
  t.equal(await countMails(account), 20)
  const { length } = await kit.events.list({ type: 'user.recovery_started' })
  t.equal(length, 20)

  const newcomer = toAddress('newcomer')
  for (let count = 0; count < 20; count++) t.equal((await admin.post('/user/invite', { data: { account: newcomer } })).status, 200)
  const { users } = kit.app.identity
  t.equal((await admin.delete(`/user/${(await users.getByAccount(newcomer))?.user_id ?? ''}`)).status, 204)
  t.match(await admin.post('/user/invite', { data: { account: newcomer } }), LIMIT)
  t.equal(await users.getByAccount(newcomer), null, 'no user was created')
  t.equal((await kit.events.list({ type: 'user.invited' })).length, 1)
  kit.clock.advance(HOUR)
  t.equal((await admin.post('/user/invite', { data: { account: newcomer } })).status, 200)
})
