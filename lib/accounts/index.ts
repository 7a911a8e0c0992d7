/**
 * Account self-service (recovery, sign-up, addresses, deletion), and invitation and recovery of other users.
 * @module
 */
import type { Base } from '../base.ts'
import type { Clients } from '../clients/clients.ts'
import { type Outbox, address, createOutbox } from '../mail/outbox.ts'
import { generateId } from '../ids.ts'
import type { Acceptance } from '../mail/acceptance.ts'
import { type Languages, OUR_LANGUAGES } from '../pages/texts/language.ts'
import { type MailLook, createMailLook } from '../mail/look.ts'
import type { Mail } from '../mail/port.ts'
import { sendInTime } from '../mail/send-limit.ts'
import type { StoredUsers } from '../users/stored-users.ts'
import { createUndos } from '../user-changes/undos.ts'
import type { OutageNotes } from '../work/outage.ts'
import { createAcceptances } from './accept.ts'
import { createAddresses } from './address.ts'
import { type SignUpOptions, createAsk } from './ask.ts'
import { type AccountContext, offError, requireOutbox } from './context.ts'
import { createDeletion } from './delete.ts'
import { createEnrolLinks } from './enrol-link.ts'
import { createIdentityLinks } from './identities.ts'
import { createInvitations } from './invite.ts'
import { createLanguageMemory } from './language.ts'
import { type LinkOptions, createClientLink, createForgotLink, createLinks, createSignInLink, createTokensLink } from './links.ts'
import { createComposer } from './mails.ts'
import { createNoticeComposer } from './notice-mails.ts'
import { createSetPassword } from './password.ts'
import { createRecovery } from './recover.ts'
import { createAddressRelease } from './release-address.ts'
import { createIdentityReplacement } from './replace-identity.ts'
import { createPasswordRemoval } from './remove-password.ts'
import { type ReturnTo, checkReturnTo, findReturn } from './return-to.ts'
import { createTestMail } from './test-mail.ts'
import { createUndoLinks } from './undo.ts'
import { createWriter } from './write-mail.ts'

export { type Asker } from './ask.ts'

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

export interface AccountParts extends Base, Omit<AccountContext, keyof StoredUsers | 'undos' | 'outbox' | 'writeLink' | 'onError'> {
  stored: StoredUsers
  clients: Pick<Clients, 'removeOwned'>
  /** Accepts the mails about changes. Absent: this process sends those that it finds. */
  acceptance?: Pick<Acceptance, 'listen'> | undefined
  /** Absent: the languages that the service brings. */
  getLanguages?: (() => Languages) | undefined
  onMailFailed: Parameters<typeof createOutbox>[0]['onFailed']
  mailOutage?: OutageNotes | undefined
}

export function createAccounts (
  { stored, clients, box, acceptance, onMailFailed, mailOutage, getLanguages = () => OUR_LANGUAGES, ...parts }: AccountParts, options: AccountOptions
) {
  const { store, now } = parts
  const onError = parts.report('mail')
  const { mail, getIssuer, accountPath, links, selfDelete, serviceName, getMailLook = createMailLook } = options
  const host = () => getIssuer?.().hostname ?? 'localhost'
  const base = {
    ...parts,
    ...stored,
    onError,
    undos: createUndos({ notices: parts.notices, now }),
    writeLink: getIssuer && createLinks({ getIssuer, accountPath, links }),
    writeForgotLink: getIssuer && createForgotLink({ getIssuer, accountPath }),
    writeClientLink: getIssuer && createClientLink({ getIssuer, accountPath }),
    writeTokensLink: getIssuer && createTokensLink({ getIssuer, accountPath }),
    writeSignInLink: getIssuer && createSignInLink({ getIssuer, accountPath })
  }
  const getLogo = () => getMailLook().logo?.attachment
  const write = createWriter({ service: () => serviceName ?? host(), getMailLook, getLanguages })
  const composeNotice = createNoticeComposer(base, write)
  const outbox: Outbox | undefined = mail && createOutbox({
    store, now, box, recorder: parts.recorder, mail, host, getLogo, compose: createComposer(base, { write, composeNotice }), composeNotice, acceptance, onError, onFailed: onMailFailed, outage: mailOutage
  })
  const context: AccountContext = { ...base, outbox }
  const ask = createAsk(context, options)
  const identityLinks = createIdentityLinks(context)
  return {
    ...ask,
    ...createSetPassword(context, { isSignUpOn: options.signUp }),
    ...createAddresses(context),
    ...createInvitations(context),
    ...createRecovery(context),
    ...createLanguageMemory(context),
    ...createDeletion(context, { clients, isOn: selfDelete }),
    ...createEnrolLinks(context),
    ...createUndoLinks(context),
    ...createPasswordRemoval(context),
    ...createAddressRelease(context),
    ...createIdentityReplacement(context),
    ...createTestMail(context),
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
      const draft = write('test', { to, language: 'en' })
      const message = { ...address(draft, mail, getLogo()), id: `<${generateId(now())}@${host()}>` }
      await sendInTime(signal, async (signal) => await mail.send(message, { signal }))
    }
  }
}

export type Accounts = ReturnType<typeof createAccounts>
