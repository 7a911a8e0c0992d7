import t, { type Test } from 'tap'
import { en } from '../../lib/pages/texts/en.ts'
import { toTimestamp } from '../../lib/clock.ts'
import type { SignInSessionRecord } from '../../lib/browsers/record.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Proof } from '../../lib/proofs.ts'
import { PASSWORD } from '../../lib/way.ts'
import { startIdentity } from '../../testing/kit.ts'
import { findFreePort } from '../helpers/port.ts'
import { Browser } from '../oidc/browser.ts'
import { enter, post } from './visits.ts'

const { account: own } = en
const PATH = '/account/password/remove'

/** A service at localhost, where passkeys count, with a person who has a password. */
async function start (t: Test, options: object = {}) {
  const port = await findFreePort()
  const issuer = `http://localhost:${port}`
  const kit = await startIdentity({ t, rateLimit: false, oidc: { issuer }, ...options })
  await kit.listen({ port })
  const user = { account: 'ann@example.com', password: 'correct horse' }
  const { user_id } = await kit.app.identity.users.create({ data: user })
  const users = kit.app.identity.store.collection<UserRecord>('users')
  const read = async () => (await users.get(user_id))!
  return {
    kit,
    user: { ...user, user_id },
    users,
    read,
    browser: () => new Browser(issuer),
    actor: async () => ({ user_id, epoch: (await read()).epoch }),
    /** Adds a passkey that begins a sign-in. */
    addPasskey: async () => (await kit.app.identity.ways.add(
      { user_id, epoch: (await read()).epoch }, { kind: 'passkey', key: `key ${user_id}`, uv: true, rp: 'localhost', material: {} }
    )).id
  }
}

t.test('a passkey that a device finds only by its id begins no sign-in, so it does not stand for the password', async (t) => {
  const { kit, user, read, actor } = await start(t)
  const { accounts, factors, ways } = kit.app.identity
  const hidden = await kit.passkey(user.user_id, { discoverable: false })
  t.match((await read()).ways?.[hidden.id], { uv: true, rk: false })
  t.equal((await hidden.signIn()).status, 400, 'it sends no handle')
  t.equal(await ways.mayRemove(await read(), PASSWORD), false)
  await t.rejects(accounts.removePassword(await actor()), { code: 'ErrPerm', refusal: 'last' })
  const known = await kit.passkey(user.user_id, { discoverable: true })
  t.equal((await read()).ways?.[known.id]?.rk, undefined)
  t.equal((await known.signIn()).status, 303)
  await accounts.removePassword(await actor())
  await t.rejects(factors.removeFactor(await actor(), known.id), { code: 'ErrPerm', refusal: 'last' }, 'the other one lets nobody in')
  await factors.removeFactor(await actor(), hidden.id)
  t.equal((await known.signIn()).status, 303)
})

t.test('a person with another way in removes their password; nobody else does', async (t) => {
  const { kit, user, users, read, addPasskey, browser, actor } = await start(t)
  const { accounts, ways, maySignIn } = kit.app.identity
  const page = await enter({ user, browser })
  t.notMatch((await page.browser.open('/account/password')).text, own.removePassword)
  const form = await page.browser.open(PATH)
  const kept = await post(form, PATH, { current_password: user.password })
  t.equal(kept.response.status, 403)
  t.match(kept.text, own.lastPassword)
  t.ok((await read()).password)

  await kit.totp(user.user_id)
  await t.rejects(accounts.removePassword(await actor()), { code: 'ErrPerm', refusal: 'last' }, 'an authenticator app begins no sign-in')
  await users.update(user.user_id, { unset: ['ways', 'has_factor'], increment: { revision: 1 } })

  const passkey = await addPasskey()
  t.equal(await ways.mayRemove(await read(), PASSWORD), true)
  await t.rejects(accounts.removePassword({ ...await actor(), epoch: 7 }), { code: 'ErrUnknown' }, 'in a session that has ended')
  const { epoch } = await read()
  const proofs = [{ way: PASSWORD, kind: 'password' as const, at: toTimestamp(kit.clock.now()) }, { way: passkey, kind: 'passkey' as const, uv: true, at: toTimestamp(kit.clock.now()) }]
  t.match(await maySignIn({ user_id: user.user_id, epoch, proofs }), { may: true })
  await kit.mails.all()
  await accounts.removePassword(await actor())
  t.match(await maySignIn({ user_id: user.user_id, epoch, proofs }), { may: false, because: 'ended' }, 'all sessions end')
  const after = await read()
  t.equal(after.password, undefined)
  t.equal(after.epoch, epoch + 1)
  t.match(await maySignIn({ user_id: user.user_id, epoch: epoch + 1, proofs }), { may: true, strength: { amr: ['pop'] } }, 'the password proves nothing any more')
  t.equal(await kit.app.identity.users.verify(user.account, user.password), null)
  t.match(await kit.mails.next({ to: user.account }), { subject: /your password was removed/, text: /From: / })
  t.match(await kit.events.list({ user: user.user_id, type: 'user.password_removed' }), [{ target: { id: user.user_id } }])
  await t.rejects(accounts.removePassword(await actor()), { code: 'ErrNotFound', refusal: 'unknown' }, 'once')
  await t.rejects(ways.remove(await actor(), passkey), { code: 'ErrPerm', refusal: 'last' }, 'and now the passkey is the last way')
})

t.test('on the page it takes the proof that other changes take; after it, the browser goes on with what else it has proved', async (t) => {
  const { kit, user, read, browser, addPasskey } = await start(t)
  const page = await enter({ user, browser })
  const id = await addPasskey()
  const totp = await kit.totp(user.user_id)
  // As if this browser had signed in by the passkey too.
  const at = toTimestamp(kit.clock.now())
  const proofs: Proof[] = [{ way: PASSWORD, kind: 'password', at }, { way: id, kind: 'passkey', uv: true, at }]
  const sessions = kit.app.identity.store.collection<SignInSessionRecord>('sign_in_sessions')
  for await (const batch of sessions.stream()) for (const { id } of batch) await sessions.update(id, { set: { proofs } })
  t.match((await page.browser.open('/account/password')).text, own.removePassword)
  const form = await page.browser.open(PATH)
  t.match(form.text, own.removePasswordWhy)
  t.match((await post(form, PATH, { current_password: 'wrong', code: await totp.code() })).text, own.wrongCurrent)
  t.match((await post(form, PATH, { current_password: user.password })).text, en.errors.wrongCode)
  t.ok((await read()).password)
  const done = await post(form, PATH, { current_password: user.password, code: await totp.code() })
  t.equal((await read()).password, undefined)
  t.match(done.text, user.account)
  t.match((await done.browser.open('/account/sessions')).text, own.browsersWhy)
})
