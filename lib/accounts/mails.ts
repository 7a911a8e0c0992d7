import { toTimestamp } from '../clock.ts'
import { type MailKind, type MailLanguage, composeMail, toMailLanguage } from '../mail/compose.ts'
import type { Draft, Job } from '../mail/outbox.ts'
import type { UserRecord } from '../records.ts'
import { hashToken } from '../tokens/tokens.ts'
import { isActive } from '../tokens/validity.ts'
import { findByName, findMailbox, isTaken } from '../users/addresses.ts'
import { mayMail } from './ask.ts'
import { type AccountContext, requireLink } from './context.ts'
import type { Purpose } from './tickets.ts'

/** Turns what the outbox holds into mails. It runs where the mail is sent, and looks at the accounts as they are then. */
export function createComposer (context: Omit<AccountContext, 'outbox'>, { service }: { service: () => string }) {
  const { users, tickets, now } = context

  const write = (kind: MailKind, language: MailLanguage, to: string, link?: string): Draft =>
    composeMail(kind, { to, service: service(), language, ...(link !== undefined && { link }) })

  /** The user's mailbox, as long as they may sign in. */
  function findActiveMailbox (user: UserRecord | null): string | undefined {
    return user !== null && isActive(user, toTimestamp(now())) ? findMailbox(user) : undefined
  }

  /**
   * A mail that anybody asked for. The same store calls whether or not there is an account: where there is none, the ticket is
   * nobody's, and its token is forgotten here.
   */
  async function composeAsked ({ kind, typed, language, uid, return_to }: Job): Promise<Draft> {
    const name = String(typed)
    const user = await findByName(users, name)
    const mailbox = findActiveMailbox(user)
    const isNew = kind === 'sign-up' && user === null
    const to = isNew ? name : mailbox
    const isWanted = to !== undefined && await mayMail(context, 'mailbox', to)
    const purpose: Purpose = isNew ? 'sign-up' : 'reset'
    const token = await tickets.issue({
      purpose,
      address: to ?? name,
      mailed: true,
      ...(user !== null && { user_id: user.id, user_epoch: user.epoch }),
      ...(isNew && typeof return_to === 'string' && { return_to })
    })
    if (to === undefined || !isWanted) return null
    const mail: MailKind = isNew ? 'sign-up' : kind === 'sign-up' ? 'exists' : 'reset'
    return write(mail, toMailLanguage(language), to, requireLink(context)(purpose, token, isNew && typeof uid === 'string' ? uid : undefined))
  }

  /** A mail about one user with a link, as long as they are as they were when it was asked for. */
  async function composeLinked (job: Job, kind: MailKind, purpose: Purpose, find: (user: UserRecord) => Promise<{ address: string, former?: string } | null>): Promise<Draft> {
    const user = await users.get(String(job.user_id))
    if (findActiveMailbox(user) === undefined && purpose !== 'change') return null
    if (user === null || (job.epoch !== undefined && user.epoch !== job.epoch)) return null
    const found = await find(user)
    if (found === null) return null
    const token = await tickets.issue({
      purpose, ...found, mailed: true, user_id: user.id, user_epoch: user.epoch, ...(typeof job.return_to === 'string' && { return_to: job.return_to })
    })
    return write(kind, toMailLanguage(job.language), found.address, requireLink(context)(purpose, token))
  }

  const toMailbox = async (user: UserRecord) => ({ address: findMailbox(user)! })

  const COMPOSE: Record<string, (job: Job) => Promise<Draft>> = {
    forgot: composeAsked,
    'sign-up': composeAsked,
    recovery: (job) => composeLinked(job, 'recovery', 'reset', toMailbox),
    invite: (job) => composeLinked(job, 'invite', 'invite', async (user) => user.invited_at === undefined ? null : await toMailbox(user)),
    verify: (job) => composeLinked(job, 'verify', 'verify', async (user) => user.email_verified_at === undefined ? await toMailbox(user) : null),
    'address-restored': (job) => composeLinked(job, 'address-restored', 'reset', toMailbox),

    async change (job) {
      const address = String(job.address)
      return await composeLinked(job, 'change', 'change', async (user) => {
        // Whoever has the address is not told that somebody asked.
        if (!isActive(user, toTimestamp(now())) || await isTaken(users, address, user.id)) return null
        const former = findMailbox(user)
        return { address, ...(former !== undefined && { former }) }
      })
    },

    /** To the former mailbox, once the change is written. */
    async 'address-changed' ({ user_id, token, to, language }) {
      const user = await users.get(String(user_id))
      const id = hashToken(String(token))
      if (user?.address_changes?.some(({ ticket }) => ticket === id) !== true) return null
      return write('address-changed', toMailLanguage(language), String(to), requireLink(context)('undo', String(token)))
    },

    async 'password-changed' ({ user_id, language }) {
      const mailbox = findActiveMailbox(await users.get(String(user_id)))
      return mailbox === undefined ? null : write('password-changed', toMailLanguage(language), mailbox)
    },
  }

  return async function compose (job: Job): Promise<Draft> {
    // A later release may have accepted it.
    const write = Object.hasOwn(COMPOSE, job.kind) ? COMPOSE[job.kind] : undefined
    if (write === undefined) throw new Error(`this release sends no mail of the kind ${job.kind}`)
    return await write(job)
  }
}
