import { type Clock, toTimestamp } from './clock.ts'
import { defined } from './defined.ts'
import type { Device } from './device.ts'
import { type UserRecord, findMailbox } from './records/user.ts'

const HOUR = 60 * 60_000
const DAY = 24 * HOUR

/** What a mail about a change leads to: a page, or what its ticket is for. */
export type NoticeLink = 'forgot' | 'sign-in' | 'client' | 'tokens' | 'reset' | 'invite' | 'undo' | 'enrol'

interface NoticeRow {
  link?: NoticeLink
  /** Milliseconds after its event, until which the mail is sent and its link works. Absent: a day. A link for a new password lasts an hour from the mail on. */
  life?: number
  /** The placeholders of its text beside the name of the service. */
  values?: readonly string[]
  /** The kind that is sent in its place once its link has ended. Absent: none is sent then. */
  plain?: string
  /** It goes to a mailbox that the change has taken from the person. Whoever reads it there need not be them. */
  isForFormer?: true
}

const ABOUT = ['time', 'place'] as const

/** The mail about an act that can be undone (lib/user-changes/undos.ts). */
const UNDO = { link: 'undo', life: 72 * HOUR, values: [...ABOUT, 'hours'] } as const
const LINKED = { ...UNDO, values: [...UNDO.values, 'upstream'], plain: 'identity-connected' } as const

/** The mails about changes. The text of each has the same name (lib/mail/texts). docs/people.md has the same table. */
export const NOTICES = {
  'password-changed': { link: 'forgot' },
  'password-set': UNDO,
  'password-removed': { values: ABOUT },
  'address-changed': UNDO,
  'address-taken-back': { isForFormer: true },
  'address-given-up': { isForFormer: true },
  'address-verified': {},
  'first-factor-added': { ...UNDO, plain: 'factor-added' },
  'first-passkey-added': { ...UNDO, plain: 'passkey-added' },
  'factor-added': { values: ABOUT },
  'passkey-added': { values: ABOUT },
  'factor-removed': { values: ABOUT },
  'passkey-removed': { values: ABOUT },
  'codes-renewed': { values: ABOUT },
  'codes-made': { ...UNDO, plain: 'codes-renewed' },
  'recovery-used': { values: [...ABOUT, 'count'] },
  'factor-closed': { values: ABOUT },
  'codes-closed': { values: ABOUT },
  unlocked: { values: ['time'] },
  'factor-reset': { values: ['time'] },
  'factor-reset-link': { link: 'enrol', life: 72 * HOUR, values: ['time'], plain: 'factor-reset' },
  undone: { link: 'reset' },
  'undone-enrol': { link: 'enrol', life: 72 * HOUR },
  'identity-linked': LINKED,
  'identity-joined': LINKED,
  'identity-rejoined': LINKED,
  'identity-connected': { values: [...ABOUT, 'upstream'] },
  'identity-replaced': { link: 'sign-in', values: ['time', 'upstream'] },
  'identity-unlinked': { values: ABOUT },
  'secret-expiring': { link: 'client', values: ['time', 'client', 'last4'] },
  'service-token-added': { values: ['time', 'client', 'last4'] },
  'service-token-expiring': { values: ['time', 'client', 'last4'] },
  'personal-token-added': { link: 'tokens', values: [...ABOUT, 'last4'] },
  'personal-token-expiring': { link: 'tokens', values: ['time', 'last4'] },
  invite: { link: 'invite', life: 7 * DAY },
  deleted: {}
} as const satisfies Record<string, NoticeRow>

export type NoticeKind = keyof typeof NOTICES

export const findRow = (kind: NoticeKind): NoticeRow & { plain?: NoticeKind } => NOTICES[kind]

/** A mail about a change, as it is stored beside the event of the change. It has no secret. */
export type Notice = {
  kind: NoticeKind
  user_id: string
  /** The mailbox and the language as they were when the change was decided. */
  to: string
  language?: string
  /** When and from where. ISO 8601. */
  time: string
  place?: Device
  /** What the link is about: the undo, the enrolment, the identity or the client. */
  of?: string
  /** The epoch of the user after the change. A link for a password ends with it. */
  epoch?: number
  /** Of such a link: the mailbox of the user after the change, where it goes to another one; '' for none. The link ends with it, too. */
  former?: string
  /** When the link ends, if not by the life of its kind. ISO 8601. */
  until?: string
  /** How many personal access tokens ended with the change. Absent: none. */
  tokens?: number
  /** Further values of the text. */
  values?: { [name: string]: string }
  /** Where the person continues after an invitation. */
  return_to?: string
  client_id?: string
  /** In a restored backup: it may have been sent since the backup was made. */
  restored?: true
}

/** Where a mail with a link for a new password goes, for `Notice`. */
export const toResetMailbox = (to: string | undefined, own: string | undefined): Pick<Partial<Notice>, 'to' | 'former'> => ({ to, ...(to !== own && { former: own ?? '' }) })

type More = Partial<Omit<Notice, 'kind' | 'user_id'>>

interface NoticeParts {
  now: Clock
  /** The place of the present request. */
  findDevice: () => Device
  /** Whether mails are sent, by this process or by another one. */
  isMailed: () => Promise<boolean>
}

/** Writes the mails about changes. They are part of what `decide` returns: nothing happens before the write. */
export function createNotices ({ now, findDevice, isMailed }: NoticeParts) {
  return {
    isMailed,
    findDevice,

    /**
     * @param user whom the mailbox and the language are of: the record that the write replaces, or makes
     * @param more.to another mailbox
     * @param more.language the language of the request, for somebody who has none
     * @returns none for somebody without a mailbox, and where no mails are sent
     */
    async write (
      kind: NoticeKind,
      user: Pick<UserRecord, 'id' | 'account' | 'email' | 'language'>,
      { to = findMailbox(user), language, ...more }: More = {}
    ): Promise<Notice[]> {
      if (to === undefined || !await isMailed()) return []
      const chosen = user.language ?? language
      const isPlaced = findRow(kind).values?.includes('place') === true
      return [defined({ kind, user_id: user.id, to, language: chosen, time: toTimestamp(now()), place: isPlaced ? { ...findDevice() } : undefined, ...more })]
    }
  }
}

export type Notices = ReturnType<typeof createNotices>
