/**
 * Account self-service (recovery, sign-up, addresses, deletion), and invitation and recovery of other users.
 * @module
 */
import type { Clients } from '../clients/clients.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { type Outbox, address, createOutbox } from '../mail/outbox.ts'
import { generateId } from '../ids.ts'
import { composeMail } from '../mail/compose.ts'
import { type Languages, OUR_LANGUAGES } from '../pages/texts/language.ts'
import { type MailLook, createMailLook } from '../mail/look.ts'
import type { Mail } from '../mail/port.ts'
import { sendInTime } from '../mail/send-limit.ts'
import type { UserRecord } from '../records.ts'
import type { StoredUsers } from '../users/stored-users.ts'
import type { OutageNotes } from '../work/outage.ts'
import { createAcceptances } from './accept.ts'
import { createAddresses } from './address.ts'
import { type SignUpOptions, createAsk } from './ask.ts'
import { type AccountContext, notify, offError, requireOutbox } from './context.ts'
import { createDeletion } from './delete.ts'
import { createFactorChanges } from './factors.ts'
import { createIdentityLinks } from './identities.ts'
import { createInvitations } from './invite.ts'
import { createLanguageMemory } from './language.ts'
import { type LinkOptions, createClientLink, createForgotLink, createLinks, createSignInLink } from './links.ts'
import { createComposer } from './mails.ts'
import { createSetPassword } from './password.ts'
import { createAddressRelease } from './release-address.ts'
import { createIdentityReplacement } from './replace-identity.ts'
import { createPasswordRemoval } from './remove-password.ts'
import { type ReturnTo, checkReturnTo, findReturn } from './return-to.ts'
import { createTickets } from './tickets.ts'

export { type Asker } from './ask.ts'

/** Milliseconds after which a mail about an expiring secret is not sent any more. */
const DAY = 24 * 60 * 60_000

export interface AccountOptions extends SignUpOptions {
  /** Absent: no mail is sent. */
  mail?: Mail | undefined
  /** The issuer; absent without the authorization server. */
  getIssuer?: (() => URL) | undefined
  accountPath: string
  links?: LinkOptions | undefined
  selfDelete: boolean
  /** The hours for which a first factor can be undone by mail; 0: never. */
  undoFactors?: number | undefined
  /** The name of the service; absent: the issuer's host. */
  serviceName?: string | undefined
  /** The design of the mails. Absent: no logo, and the colours of the pages. */
  getMailLook?: (() => MailLook) | undefined
}

export interface AccountParts extends Omit<AccountContext, keyof StoredUsers | 'tickets' | 'outbox' | 'writeLink'> {
  stored: StoredUsers
  clients: Pick<Clients, 'removeOwned'>
  box: SecretBox
  /** Absent: the languages that the service brings. */
  getLanguages?: (() => Languages) | undefined
  onMailFailed: Parameters<typeof createOutbox>[0]['onFailed']
  mailOutage?: OutageNotes | undefined
}

export function createAccounts (
  { stored, clients, box, onMailFailed, mailOutage, getLanguages = () => OUR_LANGUAGES, ...parts }: AccountParts, options: AccountOptions
) {
  const { store, now, onError } = parts
  const { mail, getIssuer, accountPath, links, selfDelete, undoFactors, serviceName, getMailLook = createMailLook } = options
  const host = () => getIssuer?.().hostname ?? 'localhost'
  const base = {
    ...parts,
    ...stored,
    tickets: createTickets({ store, now }),
    writeLink: getIssuer && createLinks({ getIssuer, accountPath, ...(links && { links }) }),
    writeForgotLink: getIssuer && createForgotLink({ getIssuer, accountPath }),
    writeClientLink: getIssuer && createClientLink({ getIssuer, accountPath }),
    writeSignInLink: getIssuer && createSignInLink({ getIssuer, accountPath })
  }
  const outbox: Outbox | undefined = mail && createOutbox({
    store, now, box, mail, host, getLogo: () => getMailLook().logo?.attachment, compose: createComposer(base, { service: () => serviceName ?? host(), getMailLook, getLanguages }), onError, onFailed: onMailFailed, outage: mailOutage
  })
  const context: AccountContext = { ...base, outbox }
  const ask = createAsk(context, options)
  const identityLinks = createIdentityLinks(context)
  return {
    ...ask,
    ...createSetPassword(context, { isSignUpOn: options.signUp }),
    ...createAddresses(context),
    ...createInvitations(context),
    ...createLanguageMemory(context),
    ...createDeletion(context, { clients, isOn: selfDelete }),
    ...createFactorChanges(context, { undoHours: undoFactors }),
    ...createPasswordRemoval(context),
    ...createAddressRelease(context),
    ...createIdentityReplacement(context),
    ...identityLinks,
    ...createAcceptances(context, { isSignUpOn: options.signUp, ...identityLinks }),
    /** @throws ErrParam, see return-to.ts */
    checkReturnTo: async (client_id: string | undefined, return_to: string | undefined) => await checkReturnTo(parts, client_id, return_to),
    /** The way to the app where a person continues after a link. */
    findReturn: async (link: Partial<ReturnTo>) => await findReturn(parts, link),
    /** The outbox of mails; absent without mail. */
    outbox,
    /**
     * Makes a failed mail due again.
     * @throws as Outbox.retry
     */
    async retryMail (id: string): Promise<void> {
      await requireOutbox(context).retry(id)
      await context.recorder.insert({ type: 'mail.retried', id })
    },
    /**
     * Sends a test mail immediately, without the outbox.
     * @throws the error of the mail server
     */
    async sendTest (to: string, signal: AbortSignal): Promise<void> {
      if (mail === undefined) throw offError('mail is not configured')
      const draft = composeMail('test', { to, language: 'en', languages: getLanguages(), values: { service: serviceName ?? host() }, look: getMailLook() })
      const message = { ...address(draft, mail, getMailLook().logo?.attachment), id: `<${generateId(now())}@${host()}>` }
      await sendInTime(signal, async (signal) => await mail.send(message, { signal }))
    },
    /** Notifies mailboxes that a user has given up, because an administrator has set the user's address. */
    async notifyOfAddress ({ id }: Pick<UserRecord, 'id'>, former: readonly string[]): Promise<void> {
      for (const to of former) await notify(context, { kind: 'address-given-up', user_id: id, to })
    },
    /** Notifies a user whose address an administrator has verified, and removes the links that would have verified it. */
    async finishVerification ({ id }: Pick<UserRecord, 'id'>): Promise<void> {
      await base.tickets.removeOf(id, ['verify']).catch(onError)
      await notify(context, { kind: 'address-verified', user_id: id })
    },
    /** Notifies the owner of a client that one of its secrets expires. Throws ErrBusy when too many mails are due. */
    async notifyOfSecret (user_id: string, client_id: string, secretId: string): Promise<void> {
      await context.outbox?.enqueue({ kind: 'secret-expiring', user_id, client_id, secret_id: secretId }, DAY)
    },
    /** Notifies a user that their password was changed. */
    notifyOfPassword: async ({ id }: Pick<UserRecord, 'id'>): Promise<void> => await notify(context, { kind: 'password-changed', user_id: id })
  }
}

export type Accounts = ReturnType<typeof createAccounts>
