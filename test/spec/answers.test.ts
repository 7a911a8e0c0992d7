import t, { type Test } from 'tap'
import { ACCESS } from '../../plugins/access-table.ts'
import { REMEDIES } from '../../lib/answers/remedies.ts'
import { IdentityError, storeError } from '../../lib/errors.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { FoundAccount } from '../../schemas/answers.ts'
import { REASONS, type Reason } from '../../schemas/reason.ts'
import type { StartOptions } from '../../testing/index.ts'
import { COMMANDS } from '../../cli/main.ts'
import { readDoc } from '../helpers/docs.ts'
import { type Person, callAs, signIn } from '../helpers/people.ts'
import { parseTable } from '../helpers/table.ts'
import { wrapStore } from '../helpers/wrap-store.ts'
import { type Harness, askCode, eachStore, startHarness } from '../oidc/harness.ts'

t.setTimeout(600_000)

const LONGEST_PAUSE = 15 * 60_000
const OPERATOR = { user_id: 'operator', isAdmin: true }

/** Asks over HTTP, as support staff, about what somebody types. */
interface Scene extends Harness {
  ask: (account: string, query?: Record<string, string>) => Promise<FoundAccount>
  as: (who: 'support' | 'admin') => Promise<Person>
}

function openScene (harness: Harness): Scene {
  const { kit } = harness
  const as = async (who: 'support' | 'admin') => who === 'admin' ? await signIn(kit, { user: 'root', roles: ['admin'] }) : { ...await kit.support(), ...callAs(kit, (await kit.support()).headers) }
  return {
    ...harness,
    as,
    async ask (account, query = {}) {
      const { status, body } = await (await as('support')).get<{ data: FoundAccount }>(`/user/sign-in?${new URLSearchParams({ account, ...query })}`)
      if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
      return body.data
    }
  }
}

const find = ({ reasons }: FoundAccount, reason: Reason) => reasons.find((one) => one.reason === reason)

/** Signs in over HTTP with the password, as a stranger's browser. */
const enters = async ({ browser }: Harness, account: string, password: string): Promise<boolean> => (
  !(await (await browser().open('/account/sign-in')).submit({ account, password })).title.endsWith('Sign in'))

async function fail ({ kit }: Scene, times: number, attempt: () => Promise<unknown>): Promise<void> {
  for (let count = 0; count < times; count++) {
    await attempt().catch((error: unknown) => { if (!(error instanceof IdentityError)) throw error })
    if (count < times - 1 && count >= 19) kit.clock.advance(LONGEST_PAUSE)
  }
}

interface Cause {
  /** Makes the cause. Resolves to what the person types. */
  make: (scene: Scene) => Promise<string>
  reason: Reason
  /** What the remedy must be called, and who does it. Absent: only the operator or the person can. */
  remedy?: string
  open?: (scene: Scene, user_id: string) => Promise<unknown>
  query?: (scene: Scene) => Promise<Record<string, string>>
}

const PASSWORD = 'correct horse'

const create = async ({ kit }: Scene, account: string): Promise<string> => (await kit.app.identity.users.create({ data: { account, password: PASSWORD } })).user_id
const unlock = async ({ as }: Scene, user_id: string): Promise<unknown> => await (await as('support')).post(`/user/${user_id}/unlock`)
const enable = async ({ as }: Scene, user_id: string): Promise<unknown> => await (await as('admin')).patch(`/user/${user_id}`, { disable: false })
const change = async ({ kit }: Scene, user_id: string, set: Partial<UserRecord>, unset: (keyof UserRecord)[] = []): Promise<unknown> =>
  await kit.app.identity.store.collection<UserRecord>('users').update(user_id, { set, unset: unset as never[], increment: { revision: 1 } })

let disabledApp = ''

const CAUSES: Record<string, Cause> = {
  'disabled by an administrator': {
    reason: 'disabled',
    remedy: 'patchUser',
    open: enable,
    async make (scene) {
      const id = await create(scene, 'disabled@example.com')
      await scene.kit.app.identity.users.patch(id, { disable: true }, OPERATOR)
      return 'disabled@example.com'
    }
  },
  expired: {
    reason: 'expired',
    remedy: 'patchUser',
    open: async ({ as, kit }, id) => await (await as('admin')).patch(`/user/${id}`, { data: { verified_at: new Date(kit.clock.now()).toISOString() } }),
    async make (scene) {
      await change(scene, await create(scene, 'expired@example.com'), { expired_at: '2020-01-01T00:00:00.000Z' })
      return 'expired@example.com'
    }
  },
  'an invitation is open': {
    reason: 'invitation_open',
    remedy: 'inviteUser',
    async make ({ kit }) {
      await kit.app.identity.accounts.inviteUser({ account: 'invited@example.com' }, OPERATOR)
      return 'invited@example.com'
    }
  },
  'paused after wrong passwords': {
    reason: 'paused',
    remedy: 'unlockUser',
    open: unlock,
    async make (scene) {
      await create(scene, 'paused@example.com')
      await fail(scene, 30, async () => await scene.kit.app.identity.users.verify('paused@example.com', 'wrong'))
      return 'paused@example.com'
    }
  },
  'locked after wrong passwords': {
    reason: 'password_locked',
    remedy: 'unlockUser',
    open: unlock,
    async make (scene) {
      await create(scene, 'locked@example.com')
      await fail(scene, 101, async () => await scene.kit.app.identity.users.verify('locked@example.com', 'wrong'))
      return 'locked@example.com'
    }
  },
  'too many attempts a minute': {
    reason: 'limited',
    remedy: 'unlockUser',
    open: unlock,
    async make (scene) {
      await create(scene, 'limited@example.com')
      for (let count = 0; count < 11; count++) await enters(scene, 'limited@example.com', 'wrong')
      return 'limited@example.com'
    }
  },
  'the authenticator app is locked': {
    reason: 'factor_locked',
    remedy: 'unlockUser',
    open: unlock,
    async make (scene) {
      const id = await create(scene, 'app@example.com')
      await scene.kit.totp(id)
      await fail(scene, 101, async () => await scene.kit.app.identity.factors.verifyTotp(id, '000000'))
      return 'app@example.com'
    }
  },
  'the backup codes are locked': {
    reason: 'factor_locked',
    remedy: 'unlockUser',
    open: unlock,
    async make (scene) {
      const id = await create(scene, 'codes@example.com')
      await scene.kit.totp(id)
      await fail(scene, 101, async () => await scene.kit.app.identity.factors.verifyCode(id, 'nota-bene-code'))
      return 'codes@example.com'
    }
  },
  'a factor is demanded and missing': {
    reason: 'factor_missing',
    remedy: 'resetFactors',
    async make (scene) {
      const id = await create(scene, 'demanded@example.com')
      await scene.kit.app.identity.users.patch(id, { data: { roles: { ops: true } } }, OPERATOR)
      await scene.kit.app.identity.heldFactors.reset(id, OPERATOR)
      return 'demanded@example.com'
    }
  },
  'the provider is off': {
    reason: 'upstream_off',
    async make (scene) {
      const id = await create(scene, 'upstream@example.com')
      await scene.kit.app.identity.ways.add({ user_id: id, epoch: null }, {
        kind: 'upstream', upstream: 'gone', issuer: 'https://gone.example', key: 'key', material: { issuer: 'https://gone.example', subject: 'x' }
      })
      await change(scene, id, {}, ['password'])
      return 'upstream@example.com'
    }
  },
  'the address is not proved': {
    reason: 'unproved_address',
    remedy: 'patchUser',
    open: async ({ as }, id) => await (await as('admin')).patch(`/user/${id}`, { data: { email_verified: true } }),
    async make (scene) {
      const id = await create(scene, 'unproved')
      await scene.kit.app.identity.users.patch(id, { data: { email: 'unproved@example.com' } }, OPERATOR)
      await change(scene, id, {}, ['password'])
      return 'unproved@example.com'
    }
  },
  'the app is disabled': {
    reason: 'client_disabled',
    remedy: 'patchClient',
    open: async ({ as }) => await (await as('admin')).patch(`/client/${disabledApp}`, { data: { disabled: false } }),
    async make (scene) {
      await create(scene, 'app-off@example.com')
      const app = await scene.register()
      await scene.kit.app.identity.clients.patch(app.client_id, { data: { disabled: true } }, OPERATOR)
      disabledApp = app.client_id
      return 'app-off@example.com'
    },
    query: async () => ({ client_id: disabledApp })
  }
}

const OPTIONS: StartOptions = { roles: { support: 'helpdesk' }, factors: { roles: ['ops'] }, rateLimit: 100, oidc: { signInLimit: 10 } }

eachStore(t, 'one request names the cause, and what it names opens it', async (t, start) => {
  const scene = openScene(await start(OPTIONS))
  for (const [name, { make, reason, remedy, open, query }] of Object.entries(CAUSES)) {
    const account = await make(scene)
    await scene.kit.flush()
    const asked = await query?.(scene) ?? {}
    const before = await scene.ask(account, asked)
    const found = find(before, reason)
    t.ok(found, `${name}: ${JSON.stringify(before.reasons)}`)
    // The other method still works.
    t.equal(before.allowed, reason === 'factor_locked', name)
    if (remedy !== undefined) t.equal(found?.remedy?.operation, remedy, name)
    else t.match(found?.remedy, { who: ['operator'], allowed: false }, name)
    if (open === undefined) continue
    await open(scene, before.user_id ?? '')
    const after = await scene.ask(account, asked)
    t.equal(find(after, reason), undefined, `${name}: ${JSON.stringify(after.reasons)}`)
    t.equal(after.allowed, reason !== 'unproved_address', name)
  }
})

eachStore(t, 'a mistyped name, a wrong password, and a mail that the server does not take', async (t, start) => {
  const refused = Object.assign(new Error('550 no such mailbox'), { responseCode: 550 })
  const scene = openScene(await start({ ...OPTIONS, mail: { local: true, send: async () => { throw refused } } }))
  await create(scene, 'ann-lee@example.com')
  t.match(await scene.ask('ann-lee@exmaple.com'), { allowed: false, reasons: [{ reason: 'no_account' }], similar: [{ account: 'ann-lee@example.com', as: 'other_spelling' }] })
  t.match(await scene.ask('ann-lee@example.com'), { allowed: true, reasons: [] })
  await enters(scene, 'ann-lee@example.com', 'wrong')
  await scene.kit.flush()
  t.match((await scene.ask('ann-lee@example.com')).attempts, [{ outcome: 'failure', reason: 'wrong_password' }])
  await enters(scene, 'ann-lee@exmaple.com', 'wrong')
  t.match(await scene.ask('ann-lee@exmaple.com'), { tried: { failures: 1 } })
  await scene.kit.app.identity.accounts.recoverUser((await scene.ask('ann-lee@example.com')).user_id ?? '', OPERATOR)
  await scene.kit.flush()
  const found = find(await scene.ask('ann-lee@example.com'), 'mail_failed') ?? find(await scene.ask('ann-lee@example.com'), 'mail_waiting')
  t.ok(found, 'the mail is named')
  t.ok(await enters(scene, 'ann-lee@example.com', PASSWORD), 'nothing of it counts against them')
})

t.test('each remedy is an operation of the access table, and its command exists', async (t) => {
  for (const [reason, opening] of Object.entries(REMEDIES)) {
    if (!('operation' in opening)) continue
    t.ok(Object.hasOwn(ACCESS, opening.operation), `${reason}: ${opening.operation}`)
    const { command } = opening
    if (command !== undefined) t.ok(Object.keys(COMMANDS).some((name) => command === name || command.startsWith(`${name} `)), `${reason}: ${command}`)
  }
})

/** What the endpoints say of a token, for a comparison. */
async function readReal ({ kit, post, get }: Harness, app: Parameters<Harness['mark']>[0], code: Record<string, string>) {
  const tokens = (await post('token', code, app)).body as { access_token: string, id_token: string }
  const claims = JSON.parse(Buffer.from(tokens.id_token.split('.')[1] ?? '', 'base64url').toString())
  const introspected = (await post('introspect', { token: tokens.access_token }, app)).body
  const userinfo = (await get('userinfo', tokens.access_token)).body
  return { claims, introspected, userinfo, kit }
}

function compare (t: Test, preview: Record<string, unknown>, real: Record<string, unknown>, absent: string[], name: string): void {
  for (const [claim, value] of Object.entries(preview)) t.same(real[claim], value, `${name}: ${claim}`)
  for (const claim of absent) t.notOk(Object.hasOwn(preview, claim), `${name}: ${claim} is absent`)
}

eachStore(t, 'a preview says what a real token says, issues nothing, and is for administrators', async (t, start) => {
  const harness = await start({ ...OPTIONS })
  const { kit, user, browser, register, mark } = harness
  const admin = await signIn(kit, { user: 'root', roles: ['admin'] })
  for (const [scope, isWhole] of [['openid', false], ['openid profile email', false], ['openid email roles', true]] as const) {
    const app = await register()
    await mark(app, { id_token_claims: isWhole })
    const query = new URLSearchParams({ user_id: user.user_id, scope })
    const { status, body } = await admin.get<{ data: Record<'id_token' | 'userinfo' | 'introspection', Record<string, unknown>> & { allowed: boolean, absent: { in: string, claim: string }[] } }>(`/client/${app.client_id}/token-preview?${query}`)
    t.equal(status, 200)
    const { data } = body
    t.equal(data.allowed, true)
    t.equal(await kit.app.identity.store.collection('grants').count({ equal: { client_id: app.client_id } }), 0, 'nothing was issued')
    const { url, verifier } = askCode(app, { scope })
    const page = await (await browser().open(url)).submit({ account: user.account, password: user.password })
    const real = await readReal(harness, app, { grant_type: 'authorization_code', code: page.left?.searchParams.get('code') ?? '', code_verifier: verifier, redirect_uri: app.redirect_uri })
    const absent = (where: string) => data.absent.filter((one) => one.in === where).map(({ claim }) => claim)
    compare(t, data.id_token, real.claims, absent('id_token'), `${scope}: id_token`)
    compare(t, data.userinfo, real.userinfo, absent('userinfo'), `${scope}: userinfo`)
    compare(t, data.introspection, real.introspected, absent('introspection'), `${scope}: introspection`)
    for (const claim of ['preferred_username', 'email', 'roles']) t.equal(Object.hasOwn(real.claims, claim), Object.hasOwn(data.id_token, claim), `${scope}: ${claim}`)
  }
  const app = await register()
  t.match(await kit.events.list({ type: 'token.previewed' }), [{ user_id: user.user_id }, {}, {}])
  t.equal((await callAs(kit, (await kit.support()).headers).get(`/client/${app.client_id}/token-preview?user_id=${user.user_id}`)).status, 403, 'never for support staff')
  t.match((await admin.get(`/client/${app.client_id}/token-preview?user_id=${user.user_id}&scope=openid%20other`)).body, { data: { allowed: false, reasons: [{ reason: 'scope_not_allowed', detail: 'other', remedy: { operation: 'patchClient' } }] } })
  t.match((await admin.get(`/client/${app.client_id}/token-preview`)).body, { data: { introspection: { sub: app.client_id } } }, "a client's own token")
  t.equal((await admin.get(`/client/none/token-preview?user_id=${user.user_id}`)).status, 404)
})

eachStore(t, "a stranger's flood of failures does not hide the person's own attempt", async (t, start) => {
  const scene = openScene(await start({ ...OPTIONS, rateLimit: false }))
  const id = await create(scene, 'flooded@example.com')
  for (let count = 0; count < 60; count++) await scene.kit.app.identity.users.verify('flooded@example.com', 'wrong').catch(() => {})
  await change(scene, id, { disabled_at: new Date(scene.kit.clock.now()).toISOString() })
  scene.kit.clock.advance(LONGEST_PAUSE)
  await enters(scene, 'flooded@example.com', PASSWORD)
  await change(scene, id, {}, ['disabled_at'])
  scene.kit.clock.advance(LONGEST_PAUSE)
  t.ok(await enters(scene, 'flooded@example.com', PASSWORD))
  const { failures, users } = scene.kit.app.identity
  for (let minute = 0; minute < 130; minute++) {
    await users.verify('flooded@example.com', 'wrong').catch(() => {})
    await failures.flush()
  }
  await scene.kit.flush()
  const { attempts, last_signed_in_at } = await scene.ask('flooded@example.com')
  t.equal(attempts.length, 20)
  t.ok(attempts.some(({ reason }) => reason === 'disabled'), 'their attempt is there, with its reason')
  t.equal(attempts.find(({ outcome }) => outcome === 'success')?.time, last_signed_in_at, 'so is their last sign-in')
})

eachStore(t, 'support staff are told of few accounts with another name, and each is recorded as read', async (t, start) => {
  const scene = openScene(await start(OPTIONS))
  for (let count = 0; count < 9; count++) await create(scene, `joan@host${count}.example`)
  const { similar = [], reasons } = await scene.ask('joan@example.com')
  t.equal(similar.length, 5)
  t.match(reasons, [{ reason: 'no_account', remedy: { operation: 'typeAccount', who: ['self'] } }], 'nobody is invited at a mistyped address')
  await scene.kit.flush()
  const viewed = (await scene.kit.events.list({ type: 'user.viewed' })).map(({ user_id }) => user_id)
  t.strictSame(viewed.sort(), similar.map(({ user_id }) => user_id).sort())
})

eachStore(t, 'a remedy that the operation would refuse this caller is not allowed', async (t, start) => {
  const scene = openScene(await start({ ...OPTIONS, mail: { local: true, send: async () => {} } }))
  const id = await create(scene, 'remote@example.com')
  await change(scene, id, {}, ['password'])
  const recover = async (who: 'support' | 'admin') => (await (await scene.as(who)).post(`/user/${id}/recovery`)).status
  t.match(find(await scene.ask('remote@example.com'), 'no_method')?.remedy, { operation: 'recoverUser', allowed: false })
  t.equal(await recover('support'), 403, 'nobody has proved the address')
  await scene.kit.app.identity.users.patch(id, { data: { email_verified: true } }, OPERATOR)
  t.match(find(await scene.ask('remote@example.com'), 'no_method')?.remedy, { operation: 'recoverUser', allowed: true })
  t.equal(await recover('support'), 200)
  await change(scene, id, { disabled_at: new Date(scene.kit.clock.now()).toISOString() })
  const { body } = await (await scene.as('admin')).get<{ data: FoundAccount }>(`/user/${id}/sign-in`)
  t.match(find(body.data, 'no_method')?.remedy, { operation: 'recoverUser', allowed: false })
  t.equal(await recover('admin'), 400, 'the account is disabled')
})

t.test('a store that fails while a remedy is judged is no refusal of it', async (t) => {
  let exceptFor = ''
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS })
  t.teardown(() => inner.close())
  const store = wrapStore(inner, ({ collection, method, args }, run) => {
    if (`${collection}.${method}` === 'users.get' && exceptFor !== '' && args[0] !== exceptFor) throw storeError(new Error('no answer'))
    return run()
  })
  const scene = openScene(await startHarness(t, { ...OPTIONS, store, mail: { local: true, send: async () => {} } }))
  const id = await create(scene, 'remote@example.com')
  await change(scene, id, {}, ['password'])
  await scene.kit.app.identity.users.patch(id, { data: { email_verified: true } }, OPERATOR)
  const staff = await scene.as('support')
  const ask = async () => await staff.get<{ data: FoundAccount, code?: string }>(`/user/${id}/sign-in`)
  t.match(find((await ask()).body.data, 'no_method')?.remedy, { operation: 'recoverUser', allowed: true })
  // The check of a recovery reads the caller's own mailbox.
  exceptFor = id
  t.match(await ask(), { status: 503, body: { code: 'ErrDb' } })
})

t.test('docs/support.md has the list of reasons', async (t) => {
  const rows = parseTable(readDoc('docs/support.md'), 'reason', 'meaning')
  t.strictSame(rows.map(([code = '', meaning]) => [code.replaceAll('`', ''), meaning?.replaceAll('`', '')]), Object.entries(REASONS).map(([code, text]) => [code, text.replaceAll('`', '')]))
})
