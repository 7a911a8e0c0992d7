import t from 'tap'
import { toTimestamp } from '../../../lib/clock.ts'
import type { Proof } from '../../../lib/proofs.ts'
import { type UserChange, type UserRecord, createUserRecord } from '../../../lib/records/user.ts'
import { DEFAULT_ROLE_NAMES as roles } from '../../../lib/roles.ts'
import { createIdentities } from '../../../lib/upstreams/identities.ts'
import { keepProof, proveAddress } from '../../../lib/user-changes/address-proof.ts'
import type { NewWay } from '../../../lib/ways/credentials.ts'
import { DEFAULT_POLICY } from '../../../lib/ways/words.ts'
import type { Upstream } from '../../../schemas/upstream.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { type RuleRow, checkRules } from '../../helpers/replaced-record.ts'
import { Scheduler } from '../../helpers/scheduler.ts'
import { openRules } from '../../helpers/services.ts'
import { openTestStored, openTestWays } from '../../helpers/user-changes.ts'

const ADDRESS = 'ann@corp.example'
const ANN = { user_id: 'ann', epoch: 0 }

const scheduler = new Scheduler()
// The user's record decides. The material of ways is prepared before, and removed after.
scheduler.isShared = ({ collection, method }) => collection === 'users' && method !== 'next'
const { store, now, tokens, records, tickets, openAccounts } = await openRules(t, { around: scheduler.around })
const TIME = toTimestamp(now())
const onError = (error: unknown) => { t.fail(String(error)) }
const recorder = createSilentRecorder(store)
const ways = openTestWays({ store, now, recorder, tokens, policy: { ...DEFAULT_POLICY, allowsUpstream: () => true }, onError })
const accounts = openAccounts({}, { ways })
const stored = openTestStored({ store, now, role: roles.admin, recorder, tokens, onRemove: async () => {}, onError })
/** People of `corp.example` sign in with `corp` only, where `only` says so. */
const open = (only: boolean) => createIdentities({
  now, roles, stored, ways, accounts, failures: { recordIdentity: () => {}, recordRefusedIdentity: () => {}, defer: () => {} }, findOnly: ({ email }) => only && email?.endsWith('@corp.example') === true ? 'corp' : undefined, names: { checkChosen: async () => {} }, signUp: true
})
const [identities, bound] = [open(false), open(true)]

const PASSWORD: Proof[] = [{ way: 'password', kind: 'password', at: TIME }]
const BOTH: Proof[] = [...PASSWORD, { way: 'x', kind: 'totp', at: TIME }]
const TOTP: NewWay = { kind: 'totp', material: { step: 1 } }
const CODES: NewWay = { kind: 'recovery', material: { hashes: [] } }
const toIdentity = (key: string): NewWay & { kind: 'upstream', upstream: string, key: string } => ({ kind: 'upstream', upstream: 'corp', key, material: { issuer: 'i', subject: key } })

const read = async (): Promise<UserRecord> => (await records.users.get('ann'))!
const count = ({ ways: held = {} }: UserRecord, kind: string): number => Object.values(held).filter((way) => way.kind === kind).length

/** Ann has a password and these ways. Resolves to their ids. */
async function create (held: readonly NewWay[]): Promise<string[]> {
  await Promise.all(['users', 'credentials', 'tickets'].map((name) => store.collection(name).deleteMany({ before: { id: '~' } })))
  const verified = { email: ADDRESS, email_verified_at: TIME }
  await records.users.insert(createUserRecord(now(), { id: 'ann', account: ADDRESS, ...verified, roles: {}, password: 'strong old', operator_password: false, name: '', info: {} }))
  const ids: string[] = []
  for (const way of held) ids.push((await ways.add(ANN, way)).id)
  return ids
}

interface Rule {
  /** What Ann has before. */
  held?: readonly NewWay[]
  /** Prepared, but not named. */
  prepared?: readonly NewWay[]
  act: (held: string[], prepared: string[]) => Promise<unknown>
  isWritten: (record: UserRecord, held: string[], prepared: string[]) => boolean
}

const isNamed: Rule['isWritten'] = ({ ways: named = {} }, _held, prepared) => prepared.every((id) => Object.hasOwn(named, id))
const isRemoved: Rule['isWritten'] = ({ ways: named = {} }, [first]) => !Object.hasOwn(named, first!)

function toRow ({ held = [], prepared = [], act, isWritten }: Rule, refusal: string, change: (held: string[]) => Promise<unknown>): RuleRow {
  return {
    refusal,
    async prepare () {
      const ids = await create(held)
      const added = await ways.prepare(ANN, prepared)
      return { act: async () => await act(ids, added), change: async () => await change(ids), isWritten: async () => isWritten(await read(), ids, added) }
    }
  }
}

const set = (change: UserChange) => async () => await stored.changeUser('ann', () => change)
const endSessions = set({ increment: { epoch: 1 } })
/** As an administrator, whose own session has nothing to say in it. */
const asAdmin = { user_id: 'ann', epoch: null }
const removeFirst = async ([first]: string[]) => await ways.remove(asAdmin, first!, { isEnd: false })

/** The first way only: no codes go with it. */
const dropFirst = async ([first]: string[]) => await stored.changeUser('ann', ({ ways: held = {} }) => ({ set: { ways: Object.fromEntries(Object.entries(held).filter(([id]) => id !== first)) } }))

/** What a session does with the ways of its user. */
const OF_SESSION: Record<string, Rule> = {
  'a factor is added': { prepared: [TOTP], act: async (_held, ids) => await accounts.addFactor({ ...ANN, proofs: PASSWORD }, ids), isWritten: isNamed },
  'a factor is removed': { held: [TOTP], act: async ([id]) => await accounts.removeFactor(ANN, id!, { isEnd: false }), isWritten: isRemoved },
  'recovery codes are renewed': { held: [TOTP], prepared: [CODES], act: async (_held, [id]) => await accounts.renewCodes({ ...ANN, proofs: BOTH }, id!), isWritten: isNamed },
  'an identity is linked': { act: async () => await accounts.linkIdentity(ANN, toIdentity('new'), 'corp'), isWritten: (record) => count(record, 'upstream') === 1 },
  'an identity is unlinked': { held: [toIdentity('one')], act: async ([id]) => await accounts.unlinkIdentity(ANN, id!, { isEnd: false }), isWritten: isRemoved },
  'the password is removed': { held: [toIdentity('one')], act: async () => await accounts.removePassword(ANN), isWritten: ({ password }) => !password }
}

await checkRules(t, scheduler, 'users', Object.fromEntries(Object.entries(OF_SESSION).map(([what, rule]) => [`${what}, until the session ends`, toRow(rule, 'ErrUnknown', endSessions)])))

await checkRules(t, scheduler, 'users', {
  'a second factor is added with the password alone, until there is a first': toRow(
    OF_SESSION['a factor is added']!, 'ErrUnknown', async () => await ways.add(asAdmin, TOTP)
  ),
  'recovery codes are renewed, until the last factor goes': toRow(OF_SESSION['recovery codes are renewed']!, 'ErrNotFound', dropFirst),
  'the password is removed, until the identity goes': { ...toRow(OF_SESSION['the password is removed']!, 'ErrPerm', removeFirst), excludes: true },
  'an identity is unlinked, until the password goes': toRow(OF_SESSION['an identity is unlinked']!, 'ErrPerm', set({ unset: ['password'] }))
})

/** A link in the mail about a way, which undoes it. The factor is the first one. */
function toUndo (kind: 'identity' | 'factor', change: (id: string) => Promise<unknown>): RuleRow {
  return {
    refusal: 'ErrTicket',
    async prepare () {
      const [id] = await create([kind === 'identity' ? toIdentity('one') : TOTP]) as [string]
      const record = await read()
      const until = toTimestamp(now() + 60_000)
      const link = await tickets.issue({ purpose: 'undo', user_id: record.id, of: 'undo', address: ADDRESS, mailed: true })
      await records.users.update('ann', { set: { undos: [{ id: 'undo', at: TIME, until, kind, added: [id], before: keepProof(record) }] } })
      return { act: async () => await accounts.undo(link), change: async () => await change(id), isWritten: async () => !(await read()).password }
    }
  }
}

const endUndos = set({ unset: ['undos'] })
await checkRules(t, scheduler, 'users', {
  'an identity is undone by its link, until another link undoes it': toUndo('identity', endUndos),
  'a first factor is undone by its link, until another link undoes it': toUndo('factor', endUndos),
  'an identity is expected in place of another one, until the person has linked it': toRow({
    act: async () => await accounts.replaceIdentity({ user_id: 'ann', epoch: null }, { upstream: 'corp', subject: 'new' }, 'corp'),
    // The identity may join later.
    isWritten: ({ epoch }) => epoch === 1
  }, 'ErrParam', async () => await ways.add(asAdmin, toIdentity('new')))
})

const UPSTREAM: Upstream = { id: 'corp', kind: 'oidc', issuer: 'https://corp.example', emails: 'verified', clientId: 'c', clientSecret: 's', create: true, link: 'verified', sync: 'first' }
const PROVEN = { upstream: UPSTREAM, claimed: { issuer: 'https://corp.example', subject: 'one', address: ADDRESS, name: '', both: false } }

/** An identity that joins an account without a sign-in to it. @throws when a sign-in is asked for first */
const join = (service: typeof identities): Rule => ({
  async act () {
    if (!('proved' in await service.settle(PROVEN))) throw Object.assign(new Error('asked'), { code: 'taken' })
  },
  isWritten: (record) => count(record, 'upstream') === 1
})

/** What makes an account one that asks. */
const ASKS: Record<string, () => Promise<unknown>> = {
  'the person is an administrator': set({ set: { roles: { [roles.admin]: true } } }),
  'the person is a manager': set({ set: { roles: { [roles.manager]: true } } }),
  'the person has another address': set({ set: { ...proveAddress('other@corp.example', 'mail', Date.now()), addresses: [ADDRESS, 'other@corp.example'] } }),
  'the address is not proved any more': set({ unset: ['email_verified_at'] }),
  'the person is disabled': set({ set: { disabled_at: TIME } }),
  'the person has expired': set({ set: { expired_at: TIME } }),
  'the person is invited': set({ set: { invited_at: TIME } }),
  'the person has undone a link': set({ set: { link_undone: true } }),
  'an operator has set the password': set({ set: { operator_password: true } }),
  'the person has a factor': async () => await ways.add(asAdmin, TOTP)
}

await checkRules(t, scheduler, 'users', Object.fromEntries(Object.entries(ASKS).map(([when, change]) => [`an identity joins an account by itself, until ${when}`, toRow(join(identities), 'taken', change)])))
await checkRules(t, scheduler, 'users', {
  'the only provider of a person joins their account, until they have another address': toRow(join(bound), 'taken', ASKS['the person has another address']!),
  'the only provider of a person joins their account, until they are bound no more': toRow(join(bound), 'taken', set({ set: proveAddress('ann@example.com', 'mail', Date.now()) }))
})
