import { toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import { hashToken } from '../crypto/random-token.ts'
import type { MailKind } from '../mail/compose.ts'
import type { Draft, Job } from '../mail/delivery.ts'
import { type UserRecord, findMailbox, isActive } from '../records/user.ts'
import { findByName, isTaken } from '../users/addresses.ts'
import { type AccountContext, requireLink } from './context.ts'
import { createEarlierMails } from './earlier-mails.ts'
import { mayMailAsked } from './mail-limits.ts'
import type { ComposeNotice } from './notice-mails.ts'
import { copyReturnTo } from './return-to.ts'
import { findLinkRefusal } from './support-links.ts'
import { type NewTicket, type Purpose, toHolder } from '../tickets/tickets.ts'
import type { WriteMail } from './write-mail.ts'

/** Composes the mails that somebody asks for. It runs when a mail is sent, and reads the accounts at that time. */
export function createComposer (
  context: Omit<AccountContext, 'outbox' | 'notices'>, { write, composeNotice }: { write: WriteMail, composeNotice: ComposeNotice }
) {
  const { users, tickets, now } = context
  const composeEarlier = createEarlierMails(context, composeNotice)

  /** The mailbox of an active user. */
  function findActiveMailbox (user: UserRecord | null): string | undefined {
    return user !== null && isActive(user, toTimestamp(now())) ? findMailbox(user) : undefined
  }

  /**
   * Composes a mail that was requested without a sign-in. The store calls are the same whether or not the account exists. If no mail
   * is sent, a ticket is issued too, but its token is discarded, and its holder is nobody, so that it replaces no link of a user.
   */
  async function composeAsked ({ kind, typed, language: asked, network, uid, ...job }: Job): Promise<Draft> {
    const name = String(typed)
    const known = await findByName(users, name)
    if (known === null) await context.findFormer?.(name)
    const user = known ?? (context.findFormer && await findByName(users, name)) ?? null
    const mailbox = findActiveMailbox(user)
    const isNew = kind === 'sign-up' && user === null
    const to = isNew ? name : mailbox
    const isWanted = to !== undefined && await mayMailAsked(context, String(network), to)
    const purpose: Purpose = isNew ? 'sign-up' : 'reset'
    // Whoever signs in by one upstream alone gets no link for a password.
    const only = user === null ? undefined : context.findOnly?.(user)
    const isHeld = isWanted && only === undefined
    const holder = user !== null && isHeld ? toHolder(user) : {}
    const further = isNew ? { ...copyReturnTo(job), language: typeof asked === 'string' ? asked : undefined } : {}
    const token = await tickets.issue({ purpose, address: isHeld ? to : hashToken(name), mailed: true, ...holder, ...further })
    if (to === undefined || !isWanted) return null
    const language = user?.language ?? asked
    const whose = user === null ? {} : { user_id: user.id }
    if (only !== undefined) return { ...write('only', { to, language, link: context.writeSignInLink?.(), values: { upstream: only.name } }), ...whose }
    const mail: MailKind = isNew ? 'sign-up' : kind === 'sign-up' ? 'exists' : 'reset'
    const link = requireLink(context)(purpose, token, typeof uid === 'string' ? uid : undefined)
    return { ...write(mail, { to, language, link }), ...whose }
  }

  /** Composes a mail with a link for one user, unless their relevant state has changed since the request. */
  async function composeLinked (
    job: Job, purpose: Purpose, find: (user: UserRecord) => Promise<Pick<NewTicket, 'address' | 'former' | 'has_factor'> | null>
  ): Promise<Draft> {
    const user = await users.get(String(job.user_id))
    if (findActiveMailbox(user) === undefined && purpose !== 'change') return null
    if (user === null || (job.epoch !== undefined && user.epoch !== job.epoch)) return null
    const found = await find(user)
    const to = found?.address
    if (to === undefined) return null
    const language = user.language ?? job.language
    const { upstream_name: upstream, return_to, client_id } = job
    const only = purpose === 'reset' ? context.findOnly?.(user) : undefined
    if (only !== undefined) return write('only', { to, language, link: context.writeSignInLink?.(), values: { upstream: only.name } })
    const token = await tickets.issue({ purpose, ...found, mailed: true, ...toHolder(user), ...copyReturnTo({ return_to, client_id }) })
    const values = defined({ account: user.account, address: to, upstream: typeof upstream === 'string' ? upstream : undefined })
    return write(job.kind as MailKind, { to, language, link: requireLink(context)(purpose, token), values })
  }

  /** Composes a mail to an address that a user asks for, or that a provider has seen at a new one. */
  async function composeChange (job: Job): Promise<Draft> {
    const address = String(job.address)
    return await composeLinked(job, 'change', async (user) => {
      // The present holder of the address gets no mail about this request.
      if (!isActive(user, toTimestamp(now())) || await isTaken(users, address, user.id)) return null
      return { address, former: findMailbox(user), has_factor: job.has_factor === true ? true : undefined }
    })
  }

  const toMailbox = async (user: UserRecord) => ({ address: findMailbox(user) })

  /** A test mail, to the address that its administrator has verified. */
  async function composeTest ({ user_id }: Job): Promise<Draft> {
    const user = await users.get(String(user_id))
    const to = user?.email_verified_at === undefined ? undefined : findActiveMailbox(user)
    return to === undefined ? null : write('test', { to, language: user?.language ?? 'en' })
  }

  const COMPOSE: Record<string, (job: Job) => Promise<Draft>> = {
    forgot: composeAsked,
    'sign-up': composeAsked,
    recovery: (job) => composeLinked(job, 'reset', async (user) => (
      job.support === true && await findLinkRefusal(context, user) !== undefined ? null : await toMailbox(user))),
    invite: (job) => composeLinked(job, 'invite', async (user) => user.invited_at === undefined ? null : await toMailbox(user)),
    verify: (job) => composeLinked(job, 'verify', async (user) => user.email_verified_at === undefined ? await toMailbox(user) : null),
    change: composeChange,
    suggest: composeChange,
    test: composeTest
  }

  return async function compose (job: Job): Promise<Draft> {
    const composeKind = Object.hasOwn(COMPOSE, job.kind) ? COMPOSE[job.kind] : undefined
    return await (composeKind ?? composeEarlier)(job)
  }
}
