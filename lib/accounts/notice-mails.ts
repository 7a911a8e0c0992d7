import { toTimestamp } from '../clock.ts'
import type { MailKind } from '../mail/compose.ts'
import type { Draft } from '../mail/delivery.ts'
import { type Notice, type NoticeLink, findRow } from '../notice.ts'
import { type UserRecord, findMailbox, isActive } from '../records/user.ts'
import { listUndos } from '../user-changes/undos.ts'
import { findWay } from '../way.ts'
import { type AccountContext, requireLink } from './context.ts'
import { copyReturnTo } from './return-to.ts'
import { type NewTicket, toHolder } from '../tickets/tickets.ts'
import type { WriteMail } from './write-mail.ts'

/** A link, or the mail that is sent in place of the one with it. */
type Linked = { link: string | undefined } | { instead: MailKind, link: string | undefined, values: Record<string, string> }

/** The end of a link, and its token, which a mail of an earlier release has brought. */
interface Life { until: string, token?: string | undefined }

/**
 * Composes the mails about changes. The change has happened, and what the mail says was decided with it. Only for its link are the user and
 * the state of the link read: it is issued now, so that no record and no event has a token.
 */
export function createNoticeComposer (context: Omit<AccountContext, 'outbox' | 'notices'>, write: WriteMail) {
  const { users, tickets, now } = context

  async function issue (ticket: NewTicket, { until, token }: Partial<Life>): Promise<Linked> {
    return { link: requireLink(context)(ticket.purpose, token ?? await tickets.issue(ticket, until)) }
  }

  /** A link that lasts as long as the user's record names what it is about. */
  const whileNamed = (purpose: 'undo' | 'enrol', isNamed: (user: UserRecord, of: string) => boolean) =>
    async ({ user_id, of = '', to }: Notice, user: UserRecord | null, life: Life): Promise<Linked | null> => (
      user === null || !isNamed(user, of) ? null : await issue({ purpose, user_id, of, mailed: true, address: to }, life))

  /** The mail of an earlier release about the link of an identity names its way. */
  const isUndoable = (user: UserRecord, of: string): boolean =>
    findWay(user, of) !== undefined || listUndos(user, now()).some(({ id }) => id === of)

  /** A link that ends with the epoch and the roles of the user. */
  function findHolder ({ epoch }: Notice, user: UserRecord | null): ReturnType<typeof toHolder> | null {
    return user !== null && user.epoch === epoch && isActive(user, toTimestamp(now())) ? toHolder(user) : null
  }

  const LINKS: Record<NoticeLink, (notice: Notice, user: UserRecord | null, life: Life) => Promise<Linked | null>> = {
    forgot: async () => ({ link: context.writeForgotLink?.() }),
    'sign-in': async () => ({ link: context.writeSignInLink?.() }),
    client: async ({ of = '' }) => ({ link: context.writeClientLink?.(of) }),
    tokens: async () => ({ link: context.writeTokensLink?.() }),
    undo: whileNamed('undo', isUndoable),
    enrol: whileNamed('enrol', ({ enrol_ticket }, of) => enrol_ticket === of),

    async invite (notice, user, life) {
      const holder = findHolder(notice, user)
      if (holder === null || user?.invited_at === undefined) return null
      return await issue({ purpose: 'invite', address: notice.to, mailed: true, ...holder, ...copyReturnTo(notice) }, life)
    },

    /** Whoever signs in by one upstream alone gets a link to the sign-in, and none for a password. */
    async reset (notice, user) {
      const { to, former } = notice
      const holder = findHolder(notice, user)
      // An administrator may have set another address since, because somebody else reads this mailbox.
      if (holder === null || user === null || (findMailbox(user) ?? '') !== (former ?? to)) return null
      const only = context.findOnly?.(user)
      if (only !== undefined) return { instead: 'undone-only', link: context.writeSignInLink?.(), values: { upstream: only.name } }
      return await issue({ purpose: 'reset', address: to, former, mailed: true, ...holder }, {})
    }
  }

  /**
   * @param until the end of the link, by the life of its kind
   * @param token of the link, in a mail that an earlier release has accepted
   * @returns null for a mail whose link has ended
   */
  return async function composeNotice (notice: Notice, until: string, token?: string): Promise<Draft> {
    const { kind, user_id, to, language, time, place, tokens } = notice
    const values = { ...notice.values, ...(tokens !== undefined && { tokens: String(tokens) }) }
    const { link: name, values: shown = [], plain } = findRow(kind)
    const about = { to, language, place, time: shown.includes('time') ? time : undefined }
    if (name === undefined) return write(kind, { ...about, values })
    const linked = await LINKS[name](notice, await users.get(user_id), { until, token })
    if (linked !== null && 'instead' in linked) return write(linked.instead, { ...about, ...linked, values: { ...values, ...linked.values } })
    if (linked !== null) return write(kind, { ...about, ...linked, values })
    return plain === undefined ? null : write(plain, { ...about, values })
  }
}

export type ComposeNotice = ReturnType<typeof createNoticeComposer>
