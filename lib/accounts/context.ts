import type { Base } from '../base.ts'
import { IdentityError } from '../errors.ts'
import type { Outbox } from '../mail/outbox.ts'
import type { Notices } from '../notice.ts'
import type { UserRecord } from '../records/user.ts'
import type { Counter } from '../throttling/counter.ts'
import type { Passwords } from '../users/passwords.ts'
import type { StoredUsers } from '../users/stored-users.ts'
import type { Undos } from '../user-changes/undos.ts'
import type { WayService } from '../ways/ways.ts'
import type { ClaimedHolder } from '../ways/words.ts'
import type { WriteLink } from './links.ts'
import type { Tickets } from '../tickets/tickets.ts'

/** An upstream by which alone somebody signs in, with its name on pages. */
export interface Only { id: string, name: string }

/** The dependencies of all operations on accounts. */
export interface AccountContext extends StoredUsers, Pick<Base, 'store' | 'now' | 'roles' | 'recorder'> {
  passwords: Passwords
  /** @throws ErrParam for a password that the rules refuse */
  checkNewPassword: (password: string, owner: { account: string, email?: string | undefined }) => Promise<string>
  /** Deletes the count of failed attempts at the user's password. */
  openPassword: (user_id: string) => Promise<void>
  tickets: Tickets
  ways: WayService
  /** The upstream by which alone this user signs in. */
  findOnly?: ((user: ClaimedHolder) => Only | undefined) | undefined
  /** Brings in somebody whom the former system knows by this name, if there is one. Rejects without an answer. */
  findFormer?: ((account: string) => Promise<void>) | undefined
  /** Writes the mails about changes. */
  notices: Notices
  /** Writes what can be undone. */
  undos: Undos
  /** The outbox of this process. Absent without a mail server. */
  outbox?: Outbox | undefined
  /** Absent without the authorization server, because links lead to its pages. */
  writeLink?: WriteLink | undefined
  /** The URL of the page for a forgotten password. Absent where writeLink is. */
  writeForgotLink?: (() => string) | undefined
  /** The URL of the page of a client. */
  writeClientLink?: ((client_id: string) => string) | undefined
  /** The URL of the page of a person's personal access tokens. */
  writeTokensLink?: (() => string) | undefined
  /** The URL of the sign-in page. */
  writeSignInLink?: (() => string) | undefined
  /** How many personal access tokens of a user are valid. Absent: there are none. */
  countTokens?: ((record: UserRecord) => Promise<number>) | undefined
  counter: Counter
  onError: (error: unknown) => void
}

/** The operation is turned off or not configured. The error is that of a missing route. */
export function offError (message: string): IdentityError {
  return new IdentityError('ErrNotFound', `path: ${message}`)
}

/** @throws ErrNotFound without mail */
export function requireOutbox ({ outbox }: Pick<AccountContext, 'outbox'>): Outbox {
  if (outbox === undefined) throw offError('mail is not configured')
  return outbox
}

/** @throws ErrNotFound without the authorization server */
export function requireLink ({ writeLink }: Pick<AccountContext, 'writeLink'>): WriteLink {
  if (writeLink === undefined) throw offError('needs the authorization server')
  return writeLink
}
