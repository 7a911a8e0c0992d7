import { activity } from './account/activity.ts'
import { apps } from './account/apps.ts'
import { client, clients, confirm } from './account/clients.ts'
import { data } from './account/data.ts'
import { email, remove, removed } from './account/email.ts'
import { addApp, addFactor, codes, factor, removeFactor } from './account/factors.ts'
import { addIdentity, removeIdentity } from './account/identities.ts'
import { methods } from './account/methods.ts'
import { addPasskey } from './account/passkeys.ts'
import { password, profile, removePassword } from './account/profile.ts'
import { sessions } from './account/sessions.ts'
import { addToken, tokens } from './account/tokens.ts'
import { chooseAccount, switchAccount } from './choose-account.ts'
import { codeUsed } from './code-used.ts'
import { consent } from './consent.ts'
import type { PageName, Pages } from './contract.ts'
import { device, deviceCompare, deviceDone } from './device.ts'
import { renderDocument } from './document.ts'
import { enrol } from './enrol.ts'
import { failure } from './failure.ts'
import { home } from './home.ts'
import type { Context, Part } from './parts.ts'
import { askLink, confirmChange, confirmLink, confirmUndo, linkDone, linkSent, setPassword } from './people.ts'
import { sentAlready } from './sent-already.ts'
import { type ScriptView, needsScript } from './script.ts'
import { selectAccount } from './select-account.ts'
import { signIn } from './sign-in.ts'
import { signInElsewhere } from './sign-in-elsewhere.ts'
import { secondStep } from './second-step.ts'
import { signedOut, signOut } from './sign-out.ts'
import type { Look } from './look.ts'
import { getTexts } from './texts/index.ts'
import type { Language } from './texts/language.ts'

export { type PageClient, type PageName, type Pages } from './contract.ts'

const PAGES: { [Name in PageName]: (data: Pages[Name], context: Context) => Part } = {
  'sign-in': signIn,
  'sign-in-elsewhere': signInElsewhere,
  'second-step': secondStep,
  enrol,
  'code-used': codeUsed,
  'choose-account': chooseAccount,
  'switch-account': switchAccount,
  consent,
  'select-account': selectAccount,
  device,
  'device-compare': deviceCompare,
  'device-done': deviceDone,
  'sign-out': signOut,
  'signed-out': signedOut,
  'account-profile': profile,
  'account-password': password,
  'account-password-remove': removePassword,
  'account-methods': methods,
  'account-app-add': addApp,
  'account-factor-add': addFactor,
  'account-factor-remove': removeFactor,
  'account-factor': factor,
  'account-identity-add': addIdentity,
  'account-identity-remove': removeIdentity,
  'account-passkey-add': addPasskey,
  'account-factor-codes': codes,
  'account-email': email,
  'account-delete': remove,
  'account-deleted': removed,
  'account-sessions': sessions,
  'account-apps': apps,
  'account-activity': activity,
  'account-clients': clients,
  'account-client': client,
  'account-tokens': tokens,
  'account-token-new': addToken,
  'account-data': data,
  'account-confirm': confirm,
  'ask-link': askLink,
  'link-sent': linkSent,
  'set-password': setPassword,
  'confirm-link': confirmLink,
  'confirm-undo': confirmUndo,
  'confirm-change': confirmChange,
  'link-done': linkDone,
  'sent-already': sentAlready,
  home,
  error: failure
}

/**
 * Renders a whole page, without external resources. Pages with passkeys, passwords or times have a script, and they work without it.
 * @param query of the page's URL, for links to the page in other languages. Absent: it cannot be opened again
 */
export function renderPage<Name extends PageName> (name: Name, data: Pages[Name], look: Look, language: Language, query?: string): string {
  const texts = getTexts(look, language)
  const script = needsScript(data as ScriptView) ? look.getScript?.() : undefined
  const part = PAGES[name](data, { texts, language, home: look.getHome?.(), links: look.links })
  return renderDocument(part, { look, texts, language, query, script })
}
