import { checkAccount } from '../checks.ts'
import { defined } from '../defined.ts'
import { paramError } from '../errors.ts'
import type { Language } from '../pages/texts/language.ts'
import { isAddress, isOfDomain } from '../records/user.ts'
import { groupNetwork } from '../throttling/networks.ts'
import type { AccountContext } from './context.ts'
import { offError, requireOutbox } from './context.ts'
import { checkAsker } from './mail-limits.ts'
import type { ReturnTo } from './return-to.ts'
import { PURPOSES } from '../tickets/tickets.ts'

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
  language?: Language
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
  async function ask (
    kind: 'forgot' | 'sign-up', typed: string, life: number, { ip, language }: Asker, extra: Record<string, string> = {}
  ): Promise<void> {
    const outbox = requireOutbox(context)
    await checkAsker(context, ip)
    const network = groupNetwork(ip)
    // In the job, it is for the limit of the mailbox, which counts when the mail is sent.
    await outbox.enqueue({ ...defined({ kind, typed, language, network }), ...extra }, life, { network })
  }

  return {
    isForgotOn: context.outbox !== undefined,
    isSignUpOn: context.outbox !== undefined && signUp,

    /**
     * Sends a link for a new password, if the account or address belongs to an active user with a mailbox.
     * @param extra.uid the interaction in which the person asked
     * @throws ErrParam for a text that cannot be an account, ErrLimit, ErrBusy, ErrNotFound without mail
     */
    async forgotPassword (account: string, asker: Asker, extra: { uid?: string } = {}): Promise<void> {
      await ask('forgot', checkAccount(account.trim()), PURPOSES.reset.life, asker, extra)
    },

    /**
     * Sends a link that creates an account. A user who has one already gets a link for a new password.
     * @param extra.return_to where the person continues. The caller has checked it
     * @param extra.uid the interaction in which the person chose to sign up
     * @throws ErrParam, ErrLimit, ErrBusy, ErrNotFound when sign-up is off
     */
    async signUp (email: string, asker: Asker, extra: Partial<ReturnTo> & { uid?: string } = {}): Promise<void> {
      if (!signUp) throw offError('sign-up is off')
      const address = checkAddress('email', email)
      if (signUpDomains !== undefined && !isOfDomain(address, signUpDomains)) throw paramError('email', 'must be of a domain that may sign up')
      await ask('sign-up', address, PURPOSES['sign-up'].life, asker, extra)
    }
  }
}
