import { IdentityError } from '../errors.ts'
import { NETWORK, groupAddress, groupNetwork, isInNetwork } from '../throttling/networks.ts'
import type { Count } from '../throttling/counter.ts'
import { hashToken } from '../crypto/random-token.ts'
import type { AccountContext } from './context.ts'

/**
 * Limits of the mails that people can request. Whoever asks without a sign-in, users who ask about their own accounts, and
 * administrators and managers are counted apart, so that none of them can use up the mails of the others. Notices are not counted,
 * because nobody can request them.
 */

const HOUR = 60 * 60 * 1000

/** Requests per hour without a sign-in from one network address. */
const PER_ASKER = 30
/** Mails per hour to one mailbox, that were requested without a sign-in from one network. */
const PER_ASKER_AND_MAILBOX = 5
/** Requests per hour of one user. */
const PER_USER = 5
/** Mails or requests per hour to one mailbox, from all of a kind of callers. */
const PER_MAILBOX = 20

/** Test mails per hour of one administrator. */
const PER_TESTER = 3

type Parts = Pick<AccountContext, 'counter'>

function check ({ current, ttl }: Count, most: number): void {
  if (current <= most) return
  const seconds = Math.max(1, Math.ceil(ttl / 1000))
  throw new IdentityError('ErrLimit', `too many emails, try again in ${seconds} s`, { headers: { 'retry-after': String(seconds) } })
}

/**
 * Counts a request without a sign-in. It does not depend on the typed account or address.
 * @throws ErrLimit when there were too many from this network address or its IPv6 /48
 */
export async function checkAsker ({ counter }: Parts, ip: string): Promise<void> {
  check(await counter.count('mail-asker', groupAddress(ip), HOUR), PER_ASKER)
  if (isInNetwork(ip)) check(await counter.count('mail-network', groupNetwork(ip), HOUR), PER_ASKER * NETWORK)
}

/**
 * Counts a mail that was requested without a sign-in, when it is about to be sent, and returns whether it may be. The answer to the
 * request was the same, so the limit does not reveal whether an account exists; and what sends no mail uses up no limit.
 * @param network of the request: groupNetwork
 */
export async function mayMailAsked ({ counter }: Parts, network: string, mailbox: string): Promise<boolean> {
  const hashed = hashToken(mailbox)
  // First, so that the refused mails of one network do not use up the limit of all.
  if ((await counter.count('mail-asker-mailbox', `${network} ${hashed}`, HOUR)).current > PER_ASKER_AND_MAILBOX) return false
  return (await counter.count('mail-asked', hashed, HOUR)).current <= PER_MAILBOX
}

/**
 * Counts a user's request for a mail about their own account. It counts whether or not a mail is sent, because a mailbox of somebody
 * else gets none, and the user must not learn that.
 * @throws ErrLimit when there were too many of this user, or for this mailbox by all users
 */
export async function checkOwnMail ({ counter }: Parts, user_id: string, mailbox: string): Promise<void> {
  check(await counter.count('mail-user', user_id, HOUR), PER_USER)
  check(await counter.count('mail-user-mailbox', hashToken(mailbox), HOUR), PER_MAILBOX)
}

/**
 * Counts the request of an administrator or manager for a mail to somebody else.
 * @throws ErrLimit when there were too many for this mailbox
 */
export async function checkStaffMail ({ counter }: Parts, mailbox: string): Promise<void> {
  check(await counter.count('mail-staff', hashToken(mailbox), HOUR), PER_MAILBOX)
}

/**
 * Counts a test mail that an administrator sends to themselves.
 * @throws ErrLimit when there were too many of this user
 */
export async function checkTestMail ({ counter }: Parts, user_id: string): Promise<void> {
  check(await counter.count('mail-test', user_id, HOUR), PER_TESTER)
}
