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

/** Mails in an hour: to one address, and at the request of one network address. */
const PER_ADDRESS = 5
const PER_ASKER = 30

/** Whether one more mail may go to this address. Notices are not counted: nobody can ask for them. */
export async function mayMail ({ counter }: Pick<AccountContext, 'counter'>, kind: 'typed' | 'mailbox', address: string): Promise<boolean> {
  return (await counter.count(`mail-${kind}`, hashToken(address), HOUR)).current <= PER_ADDRESS
}

function tooMany (ttl: number): IdentityError {
  const seconds = Math.max(1, Math.ceil(ttl / 1000))
  return new IdentityError('ErrLimit', `too many mails, try again in ${seconds} s`, { headers: { 'retry-after': String(seconds) } })
}

/** @throws ErrLimit when this network address, or its /48 of IPv6, has asked for too many mails */
async function checkAsker ({ counter }: AccountContext, ip: string): Promise<void> {
  const { current, ttl } = await counter.count('mail-asker', groupAddress(ip), HOUR)
  if (current > PER_ASKER) throw tooMany(ttl)
  if (!isInNetwork(ip)) return
  const network = await counter.count('mail-network', groupNetwork(ip), HOUR)
  if (network.current > PER_ASKER * NETWORK) throw tooMany(network.ttl)
}

/** @throws ErrLimit when too many mails were asked for to this address, by people who may know that */
export async function checkMayMail ({ counter }: AccountContext, address: string): Promise<void> {
  const { current, ttl } = await counter.count('mail-typed', hashToken(address), HOUR)
  if (current > PER_ADDRESS) throw tooMany(ttl)
}

/** Reads an address that somebody typed. @throws ErrParam */
export function checkAddress (field: string, text: string): string {
  const problem = () => paramError(field, 'must be an email address')
  if (!isAddress(text)) throw problem()
  try {
    return checkAccount(text.trim())
  } catch {
    throw problem()
  }
}

/** Who asks, without having signed in. */
export interface Asker {
  ip: string
  language?: MailLanguage
}

export interface SignUpOptions {
  signUp: boolean
  /** Absent: any. */
  signUpDomains?: readonly string[] | undefined
}

/**
 * What anybody may ask for by typing a name or an address. The request writes what was typed to the outbox and nothing else,
 * so that its answer and its work are the same whether or not there is such an account; the sender looks it up.
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
     * Sends a link that sets a new password, if the account or address is somebody's who may sign in and has a mailbox.
     * @throws ErrParam for what cannot be an account, ErrLimit, ErrBusy, ErrNotFound without mail
     */
    async forgotPassword (account: string, asker: Asker): Promise<void> {
      await ask('forgot', checkAccount(account.trim()), PURPOSES.reset.life, asker)
    },

    /**
     * Sends a link that makes an account, or to somebody who has one a link that sets a new password.
     * @param extra.return_to a URI that is registered by a client: the caller has checked it
     * @param extra.uid the interaction that the person came from
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
