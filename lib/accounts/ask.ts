import { checkAccount } from '../checks.ts'
import { IdentityError, paramError } from '../errors.ts'
import type { MailLanguage } from '../mail/compose.ts'
import { hashToken } from '../tokens/tokens.ts'
import { isAddress } from '../users/addresses.ts'
import { NETWORK, groupAddress, groupNetwork, isInNetwork } from '../sign-in/addresses.ts'
import type { AccountContext } from './context.ts'
import { offError, requireOutbox } from './context.ts'
import { PURPOSES } from './tickets.ts'

const HOUR = 60 * 60 * 1000

/** Mails per hour: to one email address, and requested from one network address. */
const PER_ADDRESS = 5
const PER_ASKER = 30

/** Counts a mail to this address, and returns whether it may be sent. Notices are not counted, because they cannot be requested. */
export async function mayMail ({ counter }: Pick<AccountContext, 'counter'>, kind: 'typed' | 'mailbox', address: string): Promise<boolean> {
  return (await counter.count(`mail-${kind}`, hashToken(address), HOUR)).current <= PER_ADDRESS
}

function tooMany (ttl: number): IdentityError {
  const seconds = Math.max(1, Math.ceil(ttl / 1000))
  return new IdentityError('ErrLimit', `too many mails, try again in ${seconds} s`, { headers: { 'retry-after': String(seconds) } })
}

/** @throws ErrLimit when too many mails were requested from this network address or its IPv6 /48 */
async function checkAsker ({ counter }: AccountContext, ip: string): Promise<void> {
  const { current, ttl } = await counter.count('mail-asker', groupAddress(ip), HOUR)
  if (current > PER_ASKER) throw tooMany(ttl)
  if (!isInNetwork(ip)) return
  const network = await counter.count('mail-network', groupNetwork(ip), HOUR)
  if (network.current > PER_ASKER * NETWORK) throw tooMany(network.ttl)
}

/** @throws ErrLimit when too many mails to this address were requested. Use it only where the caller may learn that */
export async function checkMayMail ({ counter }: AccountContext, address: string): Promise<void> {
  const { current, ttl } = await counter.count('mail-typed', hashToken(address), HOUR)
  if (current > PER_ADDRESS) throw tooMany(ttl)
}

/** Checks and normalizes a typed address. @throws ErrParam */
export function checkAddress (field: string, text: string): string {
  const problem = () => paramError(field, 'must be an email address')
  if (!isAddress(text)) throw problem()
  try {
    return checkAccount(text.trim())
  } catch {
    throw problem()
  }
}

/** The caller of a request without a sign-in. */
export interface Asker {
  ip: string
  language?: MailLanguage
}

export interface SignUpOptions {
  signUp: boolean
  /** Domains whose addresses may sign up. Absent: any. */
  signUpDomains?: readonly string[] | undefined
}

/**
 * Requests that need no sign-in, only a typed name or address. A request writes the typed text to the outbox and does nothing
 * else, so its answer and its work are the same whether or not the account exists. The sender looks the account up later.
 */
export function createAsk (context: AccountContext, { signUp, signUpDomains }: SignUpOptions) {
  async function ask (kind: 'forgot' | 'sign-up', typed: string, life: number, { ip, language = 'en' }: Asker, extra: Record<string, string> = {}): Promise<void> {
    const outbox = requireOutbox(context)
    await checkAsker(context, ip)
    if (!await mayMail(context, 'typed', typed)) return
    await outbox.enqueue({ kind, typed, language, ...extra }, life)
  }

  return {
    isForgotOn: context.outbox !== undefined,
    isSignUpOn: context.outbox !== undefined && signUp,

    /**
     * Sends a link for a new password, if the account or address belongs to an active user with a mailbox.
     * @throws ErrParam for a text that cannot be an account, ErrLimit, ErrBusy, ErrNotFound without mail
     */
    async forgotPassword (account: string, asker: Asker): Promise<void> {
      await ask('forgot', checkAccount(account.trim()), PURPOSES.reset.life, asker)
    },

    /**
     * Sends a link that creates an account. A user who has one already gets a link for a new password.
     * @param extra.return_to a URI that a client has registered. The caller has checked it
     * @param extra.uid the interaction in which the person chose to sign up
     * @throws ErrParam, ErrLimit, ErrBusy, ErrNotFound when sign-up is off
     */
    async signUp (email: string, asker: Asker, extra: { return_to?: string, uid?: string } = {}): Promise<void> {
      if (!signUp) throw offError('sign-up is off')
      const address = checkAddress('email', email)
      const domain = address.slice(address.lastIndexOf('@') + 1)
      if (signUpDomains?.every((allowed) => allowed.toLowerCase() !== domain) === true) throw paramError('email', 'must be of a domain that may sign up')
      await ask('sign-up', address, PURPOSES['sign-up'].life, asker, extra)
    }
  }
}
