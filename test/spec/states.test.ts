import t from 'tap'
import type { UserItem } from '../../schemas/user.ts'
import { forEachStore } from '../helpers/build.ts'
import { createUser, signIn, unique } from '../helpers/people.ts'

const BEGIN = '2126-11-21T02:51:00.000Z'
const LATER = '2126-11-21T02:51:01.000Z'
const PAST = '2000-01-01T00:00:00.000Z'
const FUTURE = '2130-01-01T00:00:00.000Z'

interface Markers { verified_at: string | undefined, expired_at: string | null, disabled_at: string | null }

const VERIFIED: Markers = { verified_at: BEGIN, expired_at: null, disabled_at: null }
const EXPIRING: Markers = { verified_at: undefined, expired_at: FUTURE, disabled_at: null }

/** The table of section 3: the state before, the patch one second later, the state after. */
const TRANSITIONS: { name: string, from: Markers, patch: object, to: Markers }[] = [
  { name: 'verified_at clears expired_at', from: EXPIRING, patch: { data: { verified_at: PAST } }, to: { verified_at: PAST, expired_at: null, disabled_at: null } },
  { name: 'verified_at again', from: VERIFIED, patch: { data: { verified_at: FUTURE } }, to: { verified_at: FUTURE, expired_at: null, disabled_at: null } },
  { name: 'disable true', from: VERIFIED, patch: { disable: true }, to: { ...VERIFIED, disabled_at: LATER } },
  { name: 'disable true of an expiring user', from: EXPIRING, patch: { disable: true }, to: { ...EXPIRING, disabled_at: LATER } },
  { name: 'disable true again moves disabled_at', from: { ...VERIFIED, disabled_at: BEGIN }, patch: { disable: true }, to: { ...VERIFIED, disabled_at: LATER } },
  { name: 'disable false', from: { ...EXPIRING, disabled_at: BEGIN }, patch: { disable: false }, to: EXPIRING },
  { name: 'disable false of an enabled user', from: VERIFIED, patch: { disable: false }, to: VERIFIED },
  { name: 'verified_at leaves disabled_at', from: { ...EXPIRING, disabled_at: BEGIN }, patch: { data: { verified_at: PAST } }, to: { verified_at: PAST, expired_at: null, disabled_at: BEGIN } },
  { name: 'a password change leaves all three', from: { ...EXPIRING, disabled_at: BEGIN }, patch: { data: { password: 'new' } }, to: { ...EXPIRING, disabled_at: BEGIN } }
]

await forEachStore(t, async (t, build) => {
  const kit = await build(t, { time: BEGIN })
  const admin = await signIn(kit, { roles: ['admin'] })
  t.beforeEach(() => kit.clock.set(BEGIN))

  async function read (account: string): Promise<Markers> {
    const { body: { data: [user] } } = await admin.get<{ data: UserItem[] }>(`/user/list?account=${account}&fields=expired,disabled`)
    const { verified_at, expired_at, disabled_at } = user as Required<UserItem>
    return { verified_at, expired_at, disabled_at }
  }

  /** Creates a user in this state. */
  async function make (state: Markers): Promise<{ account: string, user_id: string }> {
    const account = unique('state')
    const user_id = await createUser(admin, { account }, state.expired_at === null ? {} : { expired_at: state.expired_at })
    if (state.disabled_at !== null) await admin.patch(`/user/${user_id}`, { disable: true })
    t.strictSame(await read(account), state)
    return { account, user_id }
  }

  t.test('3 POST /user without expired_at: verified now', async (t) => {
    const { account } = await make(VERIFIED)
    t.strictSame(await read(account), VERIFIED)
  })

  t.test('3 POST /user with expired_at: not verified, expires then', async (t) => {
    for (const [given, stored] of [[FUTURE, FUTURE], [PAST, PAST], ['2130-01-01T02:00:00.5+02:00', '2130-01-01T00:00:00.500Z']] as const) {
      const account = unique('expiring')
      await createUser(admin, { account }, { expired_at: given })
      t.strictSame(await read(account), { verified_at: undefined, expired_at: stored, disabled_at: null }, given)
    }
    for (const expired_at of ['', 'tomorrow', '2130-01-01', '2130-01-01T00:00:00', '2130-02-30T00:00:00Z']) {
      const reply = await admin.post('/user', { data: { account: unique('wrong'), password: 'p' }, expired_at })
      t.match(reply, { status: 400, body: { code: 'ErrParam', message: /^expired_at: / } }, JSON.stringify(expired_at))
    }
  })

  for (const { name, from, patch, to } of TRANSITIONS) {
    t.test(`3 PATCH /user/{userId}: ${name}`, async (t) => {
      const { account, user_id } = await make(from)
      kit.clock.set(LATER)
      t.match(await admin.patch(`/user/${user_id}`, patch), { status: 204 })
      t.strictSame(await read(account), to)
    })
  }

  t.test('3 a user past expired_at is refused until verified', async (t) => {
    const account = unique('late')
    const user_id = await createUser(admin, { account, password: 'p' }, { expired_at: LATER })
    const session = await signIn(kit, { user: account, ttl: 1_000_000_000 })
    t.match(await session.get('/user'), { status: 200 })
    kit.clock.set(LATER)
    t.match(await session.get('/user'), { status: 401 })
    t.equal(await kit.app.identity.users.verify(account, 'p'), null)
    await t.rejects(kit.mint({ user: account }), { code: 'ErrParam' })
    await admin.patch(`/user/${user_id}`, { data: { verified_at: LATER } })
    t.match(await session.get('/user'), { status: 200 }, 'expiry is a state, not a revocation')
    t.match(await kit.app.identity.users.verify(account, 'p'), { user_id })
  })

  t.test('3 a disabled user is refused', async (t) => {
    const account = unique('off')
    const user_id = await createUser(admin, { account, password: 'p' })
    await admin.patch(`/user/${user_id}`, { disable: true })
    t.equal(await kit.app.identity.users.verify(account, 'p'), null)
    await t.rejects(kit.mint({ user: account }), { code: 'ErrParam' })
  })
})
