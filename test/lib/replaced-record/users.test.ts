import t from 'tap'
import { toTimestamp } from '../../../lib/clock.ts'
import { createSecretBox, generateSecretKey } from '../../../lib/crypto/secrets.ts'
import { createMove } from '../../../lib/lazy-migration/move.ts'
import { createImport } from '../../../lib/import/import-users.ts'
import { withdraw } from '../../../lib/import/withdraw.ts'
import type { UserChange, UserRecord } from '../../../lib/records/user.ts'
import { type Actor, DEFAULT_ROLE_NAMES as roles } from '../../../lib/roles.ts'
import { createRoleChanges } from '../../../lib/upstreams/role-changes.ts'
import { DEFAULT_POLICY } from '../../../lib/ways/words.ts'
import type { Upstream } from '../../../schemas/upstream.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { type RuleRow, checkRules } from '../../helpers/replaced-record.ts'
import { Scheduler } from '../../helpers/scheduler.ts'
import { PLAIN_PASSWORDS, openRules } from '../../helpers/services.ts'
import { createBase } from '../../helpers/base.ts'
import { openTestStored, openTestWays } from '../../helpers/user-changes.ts'

const ADDRESS = 'ann@example.com'
const MANAGER: Actor = { user_id: 'manager', isAdmin: false, epoch: 0 }
const SOURCE = 'crm'

const scheduler = new Scheduler()
// The user's record decides. What else is read does not change meanwhile.
scheduler.isShared = ({ collection, method }) => collection === 'users' && method !== 'next'
const { store, now, users, tokens, records, openAccounts } = await openRules(t, { around: scheduler.around })
const TIME = toTimestamp(now())
const onError = (error: unknown) => { t.fail(String(error)) }
const recorder = createSilentRecorder(store)
const stored = openTestStored({ store, now, role: roles.admin, recorder, tokens, onRemove: async () => {}, onError })
const ways = openTestWays({ store, now, recorder, tokens, policy: { ...DEFAULT_POLICY, allowsUpstream: () => true }, onError })
const accounts = openAccounts({ mail: { local: true, send: async () => {} } }, { ways })
const box = createSecretBox(generateSecretKey())
const base = createBase({ store, now, box, recorder, roles, onError })
const importUsers = createImport({
  ...base, seedKey: box.key, stored, cost: 4, canAddFactors: true, decoys: { register: async (form: string) => form }, formerImports: { has: async () => undefined }, countRest: () => Infinity
} as never)

interface Rule {
  /** Fields of the record before. */
  fields?: UserChange
  act: (user_id: string) => Promise<unknown>
  isWritten: (record: UserRecord | null) => boolean
  excludes?: true
}

async function create ({ fields = { set: {} } }: Rule): Promise<string> {
  await Promise.all(['users', 'credentials', 'deliveries'].map((name) => store.collection(name).deleteMany({ before: { id: '~' } })))
  const { user_id } = await users.create({ data: { account: ADDRESS, password: 'old' } })
  await records.users.update(user_id, fields)
  return user_id
}

const toRow = (rule: Rule, refusal: string, change: (user_id: string) => Promise<unknown>): RuleRow => ({
  refusal,
  ...(rule.excludes && { excludes: true }),
  async prepare () {
    const user_id = await create(rule)
    return { act: async () => await rule.act(user_id), change: async () => await change(user_id), isWritten: async () => rule.isWritten(await records.users.get(user_id)) }
  }
})

const set = (change: UserChange) => async (user_id: string) => await stored.changeUser(user_id, () => change)
const endSessions = set({ increment: { epoch: 1 } })
const addFactor = async (user_id: string) => await ways.add({ user_id, epoch: null }, { kind: 'totp', material: { step: 1 } })
const addIdentity = async (user_id: string) => await ways.add({ user_id, epoch: null }, { kind: 'upstream', upstream: 'corp', key: user_id, material: { issuer: 'i', subject: user_id } })
const give = (...names: string[]) => set({ set: { roles: { clerk: true, ...Object.fromEntries(names.map((name) => [name, true])) } } })

const CLERK = { set: { roles: { clerk: true } } } satisfies UserChange

/** What a manager does to somebody, and the roles that forbid it. */
const OF_MANAGER: Record<string, [rule: Rule, forbid: string[]]> = {
  'a manager disables somebody': [{ fields: CLERK, act: async (id) => await users.patch(id, { disable: true }, MANAGER), isWritten: (record) => record?.disabled_at !== undefined }, [roles.admin, roles.manager]],
  'a manager enables somebody': [{ fields: { set: { ...CLERK.set, disabled_at: TIME } }, act: async (id) => await users.patch(id, { disable: false }, MANAGER), isWritten: (record) => record?.disabled_at === undefined }, [roles.admin, roles.manager]]
}

for (const [what, [rule, forbid]] of Object.entries(OF_MANAGER)) {
  await checkRules(t, scheduler, 'users', Object.fromEntries(forbid.map((role) => [`${what}, until they are ${role}`, toRow(rule, 'ErrPerm', give(role))])))
}

/** Ann with a session, or with what she has proved by her password. */
const as = (user_id: string) => ({ user_id, isAdmin: false, isUnrestricted: false, epoch: 0, holds: () => true })
const OF_ANN: Record<string, Rule> = {
  'a person sets a new password': { act: async (id) => await users.patchOwn(id, { data: { password: 'new', current_password: 'old' } }, as(id)), isWritten: (record) => record?.password === 'strong new' },
  'a person deletes their account': { act: async (id) => await accounts.deleteOwn(id, await users.confirm(as(id), { password: 'old' })), isWritten: (record) => record === null, excludes: true }
}
const RENAMED: Rule = { act: async (id) => await users.patchOwn(id, { data: { name: 'new' } }, as(id)), isWritten: (record) => record?.name === 'new' }

await checkRules(t, scheduler, 'users', Object.fromEntries(Object.entries({ ...OF_ANN, 'a person changes their name': RENAMED }).map(([what, rule]) => [`${what}, until the session ends`, toRow(rule, 'ErrUnknown', endSessions)])))
await checkRules(t, scheduler, 'users', Object.fromEntries(Object.entries(OF_ANN).map(([what, rule]) => [`${what} with the password alone, until there is a factor`, toRow(rule, 'ErrUnknown', addFactor)])))

/** Somebody whom an import has brought in without a way to sign in. */
const IMPORTED: Rule = {
  fields: { set: { password: '', imported_source: SOURCE } },
  act: async (id) => await accounts.inviteImported(id, { user_id: 'admin', isAdmin: true }),
  isWritten: (record) => record?.invited_at !== undefined
}
await checkRules(t, scheduler, 'users', {
  'an imported person is invited, until they have a password': toRow(IMPORTED, 'ErrParam', set({ set: { password: 'strong own' } })),
  'an imported person is invited, until they have an identity': toRow(IMPORTED, 'ErrParam', addIdentity),
  'an imported person is invited, until an import takes them back': toRow(IMPORTED, 'ErrParam', set({ unset: ['imported_source'] }))
})

/** A map of a provider that gives a role, in the answer of a sign-in. */
const MAPPED: Upstream = { id: 'corp', kind: 'oidc', issuer: 'https://corp.example', clientId: 'c', clientSecret: 's', create: true, link: 'confirm', sync: 'first', roles: { claim: 'groups', map: { staff: 'clerk' } } }
const { apply } = createRoleChanges({ stored, upstreams: [MAPPED], roles, now })
const ANSWERED: Rule = {
  act: async (id) => await apply(MAPPED, { names: ['clerk'], at: now() }, { id, epoch: 0 }, { upstream: 'corp', subject: 'ann' }),
  isWritten: (record) => record?.roles['clerk'] !== undefined
}
await checkRules(t, scheduler, 'users', { 'the answer of a provider gives a role, until the sign-in has ended': toRow(ANSWERED, 'over', endSessions) })

/** Somebody who is marked to move from a former system, which has said that their password is right. */
const { complete } = createMove({ ...base, stored, passwords: PLAIN_PASSWORDS, trustEmails: false, seedKey: box.key, cost: 4, formerImports: { has: async () => undefined } })
const MARKED: Rule = {
  fields: { set: { password: '', imported_source: SOURCE, imported_lazy: true } },
  async act (id) {
    if (await complete((await records.users.get(id))!, {}, 'typed') === null) throw Object.assign(new Error('stays'), { code: 'stays' })
  },
  // The new password may be replaced later.
  isWritten: (record) => record?.epoch === 1
}
const ENDS_OF_MARK: Record<string, UserChange> = {
  'they have a password': { set: { password: 'strong own' } },
  'the mark goes': { unset: ['imported_lazy'] },
  'they are disabled': { set: { disabled_at: TIME } },
  'they have expired': { set: { expired_at: TIME } }
}
await checkRules(t, scheduler, 'users', Object.fromEntries(Object.entries(ENDS_OF_MARK).map(([when, end]) => [`somebody moves from the former system, until ${when}`, toRow(MARKED, 'stays', set(end))])))

/** A line of an import that changes somebody. @throws the reason where it is refused */
async function bring (account: string): Promise<void> {
  const run = importUsers((async function * () { yield [{ line: 1, value: { account, name: 'of the line' } }] })(), { source: SOURCE, onConflict: 'update' })
  for await (const [verdict] of run.verdicts) if (verdict?.result !== 'updated') throw Object.assign(new Error(JSON.stringify(verdict)), { code: verdict?.result })
}

const UPDATED: Rule = { fields: { set: { imported_source: SOURCE } }, act: async () => await bring(ADDRESS), isWritten: (record) => record?.name === 'of the line' }
await checkRules(t, scheduler, 'users', {
  ...Object.fromEntries(Object.values(roles).map((role) => [`an import changes somebody, until they are ${role}`, toRow(UPDATED, 'refused', give(role))])),
  'an import changes somebody, until they are of another source': toRow(UPDATED, 'refused', set({ set: { imported_source: 'another' } }))
})

/** Somebody whom a run has brought in, and whom nobody has changed since. @throws what became of them where they stay */
const WITHDRAWN: Rule = {
  fields: { set: { imported_source: SOURCE, imported_run: 'run', imported_revision: 0 } },
  async act () {
    for await (const [withdrawn] of withdraw({ store, stored, roles }, 'run')) if (withdrawn?.result !== 'removed') throw Object.assign(new Error('stays'), { code: withdrawn?.result })
  },
  isWritten: (record) => record === null,
  excludes: true
}
await checkRules(t, scheduler, 'users', {
  'an import is withdrawn with somebody, until they are changed': toRow(WITHDRAWN, 'kept', set({ set: { name: 'new' } })),
  'an import is withdrawn with somebody, until they set a password': toRow(WITHDRAWN, 'kept', set({ set: { password: 'strong own' }, increment: { epoch: 1 } }))
})
