import { toTimestamp } from '../clock.ts'
import { hashToken } from '../crypto/random-token.ts'
import { defined } from '../defined.ts'
import type { Draft, Job } from '../mail/delivery.ts'
import { type Notice, type NoticeKind, toResetMailbox } from '../notice.ts'
import type { Device } from '../device.ts'
import type { ClientRecord } from '../records/client.ts'
import { type UserRecord, findMailbox, isActive } from '../records/user.ts'
import { listUndos } from '../user-changes/undos.ts'
import { findWay } from '../way.ts'
import type { AccountContext } from './context.ts'
import type { ComposeNotice } from './notice-mails.ts'

/** What a mail of an earlier release says now, and to whom where it does not say so. Null where the change has not happened. */
type Found = Partial<Omit<Notice, 'user_id'>> | null

const hasWay = (user: UserRecord, { way }: Job): boolean => findWay(user, String(way)) !== undefined

/**
 * The mails about changes that an earlier release has accepted. They were stored before the change, so the record says whether it has
 * happened, and they bring the token of their link.
 */
export function createEarlierMails ({ users, store, now }: Pick<AccountContext, 'users' | 'store' | 'now'>, composeNotice: ComposeNotice) {
  /** The mailbox that the user has now. */
  const toUser = (user: UserRecord | null): Found => user !== null && isActive(user, toTimestamp(now())) ? { to: findMailbox(user) } : null

  const about = (isDone: (user: UserRecord, job: Job) => boolean, toKind?: (user: UserRecord, job: Job) => NoticeKind) =>
    (user: UserRecord | null, job: Job): Found => {
      if (user === null || !isDone(user, job)) return null
      return toKind === undefined ? {} : { kind: toKind(user, job) }
    }

  async function findSecret (user: UserRecord | null, { client_id, secret_id }: Job): Promise<Found> {
    const client = await store.collection<ClientRecord>('clients').get(String(client_id))
    const secret = client?.secrets?.find(({ id }) => id === secret_id)
    if (client === null || secret?.expires_at === undefined || user === null || client.userId !== user.id) return null
    return { ...toUser(user), of: client.id, time: secret.expires_at, values: { client: client.id, last4: secret.last4 } }
  }

  const isFirst = ({ first_factors = [] }: UserRecord, { token }: Job): boolean =>
    typeof token === 'string' && first_factors.some(({ ticket }) => ticket === hashToken(token))

  const isReset = ({ enrol_ticket }: UserRecord, { token }: Job): boolean => token === undefined || enrol_ticket === hashToken(String(token))

  function toAdded (user: UserRecord, job: Job): NoticeKind {
    const kind = findWay(user, String(job.way))?.kind === 'passkey' ? 'passkey' : 'factor'
    return isFirst(user, job) ? `first-${kind}-added` : `${kind}-added`
  }

  const FOUND: Record<string, (user: UserRecord | null, job: Job) => Found | Promise<Found>> = {
    'password-changed': toUser,
    'password-removed': about(({ password }) => !password),
    'address-changed': () => ({}),
    'address-restored': (user) => user && { kind: 'undone', to: findMailbox(user) },
    'address-taken-back': () => ({}),
    'address-given-up': () => ({}),
    'address-verified': (user) => user?.email_verified_at === undefined ? null : toUser(user),
    'factor-added': about(hasWay, toAdded),
    'factor-removed': about((user, job) => !hasWay(user, job), (_user, { factor }) => factor === 'passkey' ? 'passkey-removed' : 'factor-removed'),
    'codes-renewed': about(hasWay),
    'recovery-used': about(() => true),
    'factor-closed': about(() => true),
    'factor-reset': about(isReset, (_user, { token }) => token === undefined ? 'factor-reset' : 'factor-reset-link'),
    'factor-undone': (user) => {
      if (user === null) return null
      const own = findMailbox(user)
      return { kind: 'undone', ...toResetMailbox(listUndos(user, now())[0]?.mailbox ?? own, own) }
    },
    'identity-linked': about(hasWay),
    'identity-joined': about(hasWay),
    'identity-rejoined': about(hasWay),
    'identity-replaced': about(({ expected_identities = [] }, job) => (
      expected_identities.some(({ upstream }) => upstream === job.upstream))),
    'identity-unlinked': about((user, job) => !hasWay(user, job)),
    'secret-expiring': findSecret,
    deleted: (user) => user === null ? {} : null
  }

  return async function composeEarlier (job: Job): Promise<Draft> {
    const { kind, user_id: id, to, time, place, language, token, way, epoch, count, hours, upstream_name: upstream } = job
    const find = Object.hasOwn(FOUND, kind) ? FOUND[kind] : undefined
    if (find === undefined) throw new Error(`this release sends no email of the kind ${kind}`)
    const user = await users.get(String(id))
    const found = await find(user, job)
    const mailbox = to ?? found?.to
    if (found === null || typeof mailbox !== 'string') return null
    const values = Object.entries(defined({ count, hours, upstream })).map(([name, value]) => [name, String(value)])
    const named = typeof token === 'string' ? hashToken(token) : undefined
    const notice: Notice = {
      kind: kind as NoticeKind,
      user_id: String(id),
      to: mailbox,
      language: user?.language ?? (typeof language === 'string' ? language : undefined),
      time: typeof time === 'string' ? time : toTimestamp(now()),
      of: typeof way === 'string' && kind.startsWith('identity-') ? way : named,
      epoch: typeof epoch === 'number' ? epoch : undefined,
      values: Object.fromEntries(values),
      place: place as Device | undefined,
      ...found
    }
    // Its token has a ticket already, which has an end.
    return await composeNotice({ ...notice, to: mailbox }, '', typeof token === 'string' ? token : undefined)
  }
}
