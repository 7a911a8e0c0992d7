import { toTimestamp } from '../clock.ts'
import type { MailLook } from '../mail/look.ts'
import { type MailKind, composeMail } from '../mail/compose.ts'
import type { Draft, Job } from '../mail/outbox.ts'
import type { Place } from '../place.ts'
import type { Languages } from '../pages/texts/language.ts'
import { type ClientRecord, type UserRecord, isActive } from '../records.ts'
import { hashToken } from '../crypto/random-token.ts'
import { findByName, findMailbox, isTaken, listLiveChanges } from '../users/addresses.ts'
import { type AccountContext, requireLink } from './context.ts'
import type { LinkOptions } from './identities.ts'
import { mayMailAsked } from './mail-limits.ts'
import { copyReturnTo } from './return-to.ts'
import { type NewTicket, type Purpose, toHolder } from './tickets.ts'

interface ComposerParts {
  service: () => string
  getMailLook: () => MailLook
  getLanguages: () => Languages
}

/** Composes mails from the jobs in the outbox. It runs when a mail is sent, and reads the accounts at that time. */
export function createComposer (context: Omit<AccountContext, 'outbox'>, { service, getMailLook, getLanguages }: ComposerParts) {
  const { users, tickets, now } = context

  /** Writes the link of an undo or an enrolment. Jobs of earlier releases have its token. */
  async function issueLink ({ user_id, token, until }: Job, ticket: Pick<NewTicket, 'purpose' | 'address' | 'of' | 'way'>): Promise<string> {
    const issued = typeof token === 'string' ? token : await tickets.issue({ ...ticket, user_id: String(user_id), mailed: true }, String(until))
    return requireLink(context)(ticket.purpose, issued)
  }

  /** The id by which a user's record names what a job is about. Undefined without one. */
  const findOf = ({ of, token }: Job): string | undefined => typeof of === 'string' ? of : typeof token === 'string' ? hashToken(token) : undefined

  /** @param asked the language of the request. That of the user comes first */
  function write (
    kind: MailKind, user: Pick<UserRecord, 'language'> | null, asked: unknown, to: string, link?: string, about: Record<string, string> = {}
  ): Draft {
    const languages = getLanguages()
    const language = languages.check(user?.language ?? asked)
    return composeMail(kind, { to, link, language, languages, look: getMailLook(), values: { ...about, service: service() } })
  }

  const showTime = (timestamp: string, language: string) =>
    `${new Intl.DateTimeFormat(language, { dateStyle: 'long', timeStyle: 'short', hourCycle: 'h23', timeZone: 'UTC' }).format(new Date(timestamp))} UTC`

  /** Writes a mail about something that has happened, with its time and place. */
  function writeAbout (kind: MailKind, user: UserRecord | null, { to, time, place, count, hours, upstream_name: upstream }: Job, link?: string): Draft {
    if (user === null) return null
    const languages = getLanguages()
    const language = languages.check(user.language)
    const { browser, system, address } = place as Place
    const known = [browser, system, address].filter((part) => part !== undefined).join(', ')
    return write(kind, user, undefined, String(to), link, {
      time: showTime(String(time), language),
      place: known === '' ? '?' : known,
      ...(typeof count === 'number' && { count: String(count) }),
      ...(typeof hours === 'number' && { hours: String(hours) }),
      ...(typeof upstream === 'string' && { upstream })
    })
  }

  /** The mailbox of an active user. */
  function findActiveMailbox (user: UserRecord | null): string | undefined {
    return user !== null && isActive(user, toTimestamp(now())) ? findMailbox(user) : undefined
  }

  /**
   * Composes a mail that was requested without a sign-in. The store calls are the same whether or not the account exists. If no mail
   * is sent, a ticket is issued too, but its token is discarded, and its holder is nobody, so that it replaces no link of a user.
   */
  async function composeAsked ({ kind, typed, language, network, uid, ...job }: Job): Promise<Draft> {
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
    const token = await tickets.issue({
      purpose,
      address: isHeld ? to : hashToken(name),
      mailed: true,
      ...(user !== null && isHeld && toHolder(user)),
      ...(isNew && copyReturnTo(job)),
      ...(isNew && typeof language === 'string' && { language })
    })
    if (to === undefined || !isWanted) return null
    if (only !== undefined) return write('only', user, language, to, context.writeSignInLink?.(), { upstream: only.name })
    const mail: MailKind = isNew ? 'sign-up' : kind === 'sign-up' ? 'exists' : 'reset'
    return write(mail, user, language, to, requireLink(context)(purpose, token, isNew && typeof uid === 'string' ? uid : undefined))
  }

  /** Composes a mail with a link for one user, unless their relevant state has changed since the request. */
  async function composeLinked (
    job: Job, purpose: Purpose, find: (user: UserRecord) => Promise<Pick<NewTicket, 'former' | 'has_factor'> & { address: string } | null>
  ): Promise<Draft> {
    const user = await users.get(String(job.user_id))
    if (findActiveMailbox(user) === undefined && purpose !== 'change') return null
    if (user === null || (job.epoch !== undefined && user.epoch !== job.epoch)) return null
    const found = await find(user)
    if (found === null) return null
    // Whoever signs in by one upstream alone gets a link to the sign-in, and none for a password.
    const only = purpose === 'reset' ? context.findOnly?.(user) : undefined
    if (only !== undefined) {
      const kind = job.kind === 'recovery' ? 'only' : `${job.kind as 'address-restored' | 'factor-undone'}-only` as const
      return write(kind, user, job.language, found.address, context.writeSignInLink?.(), { upstream: only.name })
    }
    const token = await tickets.issue({
      purpose, ...found, mailed: true, ...toHolder(user), ...copyReturnTo(job)
    })
    const { address } = found
    const { upstream_name: upstream } = job
    const about = { account: user.account, address, ...(typeof upstream === 'string' && { upstream }) }
    return write(job.kind as MailKind, user, job.language, address, requireLink(context)(purpose, token), about)
  }

  /** Composes a mail to an address that a user asks for, or that a provider has seen at a new one. */
  async function composeChange (job: Job): Promise<Draft> {
    const address = String(job.address)
    return await composeLinked(job, 'change', async (user) => {
      // The present holder of the address gets no mail about this request.
      if (!isActive(user, toTimestamp(now())) || await isTaken(users, address, user.id)) return null
      const former = findMailbox(user)
      return { address, ...(former !== undefined && { former }), ...(job.has_factor === true && { has_factor: true }) }
    })
  }

  /** Tells the mailbox that was the user's. */
  const composeFormer = async ({ kind, user_id, to, language }: Job): Promise<Draft> =>
    write(kind as MailKind, await users.get(String(user_id)), language, String(to))

  /** The mailbox before the changes of the address that can still be undone: they may come from the person who was locked out. */
  async function toFormerMailbox (user: UserRecord): Promise<{ address: string, former?: string }> {
    const [first] = listLiveChanges(user, now())
    const address = first && findMailbox({ account: user.account, ...first })
    return address === undefined ? await toMailbox(user) : { address, former: findMailbox(user)! }
  }

  const toMailbox = async (user: UserRecord) => ({ address: findMailbox(user)! })

  /** With the link that undoes it, while the account has the identity. */
  async function composeLinkedIdentity (job: Job): Promise<Draft> {
    const user = await users.get(String(job.user_id))
    if (user === null || !Object.hasOwn(user.ways ?? {}, String(job.way))) return null
    const link = await issueLink(job, { purpose: 'undo-link', address: String(job.to), way: String(job.way) })
    return writeAbout(job.kind as NonNullable<LinkOptions['notice']>, user, job, link)
  }

  const COMPOSE: Record<string, (job: Job) => Promise<Draft>> = {
    forgot: composeAsked,
    'sign-up': composeAsked,
    recovery: (job) => composeLinked(job, 'reset', toMailbox),
    invite: (job) => composeLinked(job, 'invite', async (user) => user.invited_at === undefined ? null : await toMailbox(user)),
    verify: (job) => composeLinked(job, 'verify', async (user) => user.email_verified_at === undefined ? await toMailbox(user) : null),
    'address-restored': (job) => composeLinked(job, 'reset', toMailbox),

    change: composeChange,
    suggest: composeChange,

    /** Goes to the former mailbox, after the change was written. */
    async 'address-changed' (job) {
      const user = await users.get(String(job.user_id))
      const of = findOf(job)
      if (of === undefined || user?.address_changes?.some(({ ticket }) => ticket === of) !== true) return null
      return write('address-changed', user, job.language, String(job.to), await issueLink(job, { purpose: 'undo', of }))
    },

    'address-taken-back': composeFormer,
    'address-given-up': composeFormer,

    async 'address-verified' ({ user_id, language }) {
      const user = await users.get(String(user_id))
      const mailbox = findActiveMailbox(user)
      return mailbox === undefined || user?.email_verified_at === undefined ? null : write('address-verified', user, language, mailbox)
    },

    async 'password-changed' ({ user_id, language }) {
      const user = await users.get(String(user_id))
      const mailbox = findActiveMailbox(user)
      return mailbox === undefined ? null : write('password-changed', user, language, mailbox, context.writeForgotLink?.())
    },

    /** With a link only for a first factor that can still be undone. */
    async 'factor-added' (job) {
      const user = await users.get(String(job.user_id))
      if (user === null || !Object.hasOwn(user.ways ?? {}, String(job.way))) return null
      const of = findOf(job)
      const isFirst = of !== undefined && user.first_factors?.some(({ ticket }) => ticket === of)
      const what = user.ways![String(job.way)]!.kind === 'passkey' ? 'passkey' : 'factor'
      if (!isFirst) return writeAbout(`${what}-added`, user, job)
      return writeAbout(`first-${what}-added`, user, job, await issueLink(job, { purpose: 'undo-factor', address: String(job.to), of }))
    },

    async 'password-removed' (job) {
      const user = await users.get(String(job.user_id))
      return user?.password ? null : writeAbout('password-removed', user, job)
    },

    async 'codes-renewed' (job) {
      const user = await users.get(String(job.user_id))
      return user !== null && Object.hasOwn(user.ways ?? {}, String(job.way)) ? writeAbout('codes-renewed', user, job) : null
    },

    async 'factor-removed' (job) {
      const user = await users.get(String(job.user_id))
      return user === null || Object.hasOwn(user.ways ?? {}, String(job.way)) ? null : writeAbout(job.factor === 'passkey' ? 'passkey-removed' : 'factor-removed', user, job)
    },

    'identity-linked': composeLinkedIdentity,
    'identity-joined': composeLinkedIdentity,
    'identity-rejoined': composeLinkedIdentity,

    /** Unless the identity has joined already: then a mail tells of that. */
    async 'identity-replaced' (job) {
      const user = await users.get(String(job.user_id))
      const isExpected = user?.expected_identities?.some(({ upstream }) => upstream === job.upstream) === true
      return isExpected ? writeAbout('identity-replaced', user, job, context.writeSignInLink?.()) : null
    },

    async 'identity-unlinked' (job) {
      const user = await users.get(String(job.user_id))
      return user === null || Object.hasOwn(user.ways ?? {}, String(job.way)) ? null : writeAbout('identity-unlinked', user, job)
    },

    'recovery-used': async (job) => writeAbout('recovery-used', await users.get(String(job.user_id)), job),
    'factor-closed': async (job) => writeAbout('factor-closed', await users.get(String(job.user_id)), job),

    /** With a link while the user adds a factor only with it. */
    async 'factor-reset' (job) {
      const user = await users.get(String(job.user_id))
      const of = findOf(job)
      if (of === undefined) return writeAbout('factor-reset', user, job)
      return user?.enrol_ticket === of ? writeAbout('factor-reset-link', user, job, await issueLink(job, { purpose: 'enrol', of })) : null
    },

    'factor-undone': (job) => composeLinked(job, 'reset', toFormerMailbox),

    /** Goes to the present owner, unless the secret was removed. The name of the client may be somebody else's text, so it is left out. */
    async 'secret-expiring' ({ user_id, client_id: id, secret_id }) {
      const user = await users.get(String(user_id))
      const mailbox = findActiveMailbox(user)
      const client = await context.store.collection<ClientRecord>('clients').get(String(id))
      const secret = client?.secrets?.find((one) => one.id === secret_id)
      if (user === null || mailbox === undefined || client?.userId !== user.id || secret?.expires_at === undefined) return null
      const time = showTime(secret.expires_at, getLanguages().check(user.language))
      return write('secret-expiring', user, undefined, mailbox, context.writeClientLink?.(client.id), { client: client.id, last4: secret.last4, time })
    },

    /** Goes to the mailbox of an account that is gone. */
    async deleted ({ user_id, to, language }) {
      return await users.get(String(user_id)) === null ? write('deleted', null, language, String(to)) : null
    }
  }

  return async function compose (job: Job): Promise<Draft> {
    // A process of a later release may have accepted the job.
    const write = Object.hasOwn(COMPOSE, job.kind) ? COMPOSE[job.kind] : undefined
    if (write === undefined) throw new Error(`this release sends no mail of the kind ${job.kind}`)
    return await write(job)
  }
}
