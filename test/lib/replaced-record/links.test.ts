import t from 'tap'
import { toHolder } from '../../../lib/tickets/tickets.ts'
import { toTimestamp } from '../../../lib/clock.ts'
import type { UserChange, UserRecord } from '../../../lib/records/user.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { type RuleRow, checkRules } from '../../helpers/replaced-record.ts'
import { Scheduler } from '../../helpers/scheduler.ts'
import { openRules } from '../../helpers/services.ts'
import { openTestStored } from '../../helpers/user-changes.ts'

const ACCOUNT = 'ann@example.com'
const NEW = 'new@example.com'

const scheduler = new Scheduler()
// The user's record decides. A link is read, and removed after that.
scheduler.isShared = ({ collection, method }) => collection === 'users' && method !== 'next'
const { store, now, users, tokens, records, tickets, openAccounts } = await openRules(t, { around: scheduler.around })
const accounts = openAccounts()
const stored = openTestStored({ store, now, role: 'admin', recorder: createSilentRecorder(store), tokens, onRemove: async () => {}, onError: (error) => { t.fail(String(error)) } })

/** What a link does, and what its use leaves in the record whatever comes later. */
const LINKS: Record<string, { purpose: 'reset' | 'invite' | 'verify' | 'change', use: (link: string, user_id: string) => Promise<unknown>, isWritten: (record: UserRecord) => boolean }> = {
  'a link for a new password': { purpose: 'reset', use: async (link) => await accounts.setPassword(link, 'new'), isWritten: ({ password }) => password === 'strong new' },
  'an invitation': { purpose: 'invite', use: async (link) => await accounts.setPassword(link, 'new'), isWritten: ({ password }) => password === 'strong new' },
  'a link that verifies an address': { purpose: 'verify', use: async (link) => await accounts.verifyAddress(link), isWritten: ({ email_verified_at }) => email_verified_at !== undefined },
  'a link that changes an address': { purpose: 'change', use: async (link, user_id) => await accounts.verifyAddress(link, user_id), isWritten: ({ addresses = [], email }) => [...addresses, email].includes(NEW) }
}

/** What ends a link. */
const ENDS: Record<string, UserChange> = {
  'the user is disabled': { set: { disabled_at: toTimestamp(now()) } },
  'the user has expired': { set: { expired_at: toTimestamp(now()) } },
  'the sessions of the user end': { increment: { epoch: 1 } },
  'the user gets a role': { set: { roles: { clerk: true } } },
  'the user has another address': { set: { account: 'other@example.com' } }
}

async function create (purpose: string): Promise<string> {
  await Promise.all(['users', 'tickets'].map((name) => store.collection(name).deleteMany({ before: { id: '~' } })))
  const { user_id } = await users.create({ data: { account: ACCOUNT, password: 'old' } })
  if (purpose === 'invite') await records.users.update(user_id, { set: { password: '', invited_at: toTimestamp(now()) } })
  return user_id
}

function toRow ({ purpose, use, isWritten }: typeof LINKS[string], end: UserChange): RuleRow {
  return {
    refusal: 'ErrTicket',
    async prepare () {
      const user_id = await create(purpose)
      const read = async () => (await records.users.get(user_id))!
      const mailed = purpose === 'change' ? { address: NEW, former: ACCOUNT } : { address: ACCOUNT }
      const link = await tickets.issue({ purpose, ...toHolder(await read()), ...mailed, mailed: true })
      return {
        act: async () => await use(link, user_id),
        change: async () => await stored.changeUser(user_id, () => end),
        isWritten: async () => isWritten(await read())
      }
    }
  }
}

const rows = Object.entries(LINKS).flatMap(([what, link]) => Object.entries(ENDS).map(([when, end]) => [`${what} counts until ${when}`, toRow(link, end)] as const))
await checkRules(t, scheduler, 'users', Object.fromEntries(rows))
await checkRules(t, scheduler, 'users', {
  'a link that changes an address counts until the user has a factor': toRow(LINKS['a link that changes an address']!, { set: { has_factor: true } })
})
