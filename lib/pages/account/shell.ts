import type { AccountView } from '../contract.ts'
import { type Html, html } from '../html.ts'
import { type Part, alert, describes, hidden, name, passwordInput, titled, username } from '../parts.ts'
import { passkey as offer, tell } from '../passkey.ts'
import type { Texts } from '../texts/en.ts'
import type { Language } from '../texts/language.ts'

/** The path of a section. The profile is the first account page. */
const toSectionPath = ({ base }: Pick<AccountView, 'base'>, section: AccountView['section']) => section === 'profile' ? base : `${base}/${section}`

function navigate (view: AccountView, { account: own }: Texts): Html {
  const { base, section, sections, account, xsrf } = view
  return html`<nav aria-label="${own.navigation}">
<details>
<summary>${own.navigation}</summary>
<ul>
${sections.map((one) => html`<li${one === 'delete' && html` class="apart"`}><a href="${toSectionPath(view, one)}"${one === section && html` aria-current="page"`}>${own.sections[one]}</a></li>\n`)}</ul>
<form method="post" action="${base}/sign-out">
${hidden('xsrf', xsrf)}<p class="who">${name(account)}</p>
<button type="submit">${own.signOut}</button>
</form>
</details>
</nav>
`
}

/** A page of the account, below its navigation. */
export function frame (view: AccountView, texts: Texts, body: Html, heading?: Html): Part {
  const { section, done, error, signals } = view
  const title = texts.account.sections[section]
  return {
    title: titled(title, error, texts),
    before: navigate(view, texts),
    body: html`<h1>${heading ?? title}</h1>
${done !== undefined && html`<p class="done" role="status">${texts.account.done[done]}</p>\n`}${alert(error, texts)}${body}${tell(signals)}`
  }
}

/** Characters of a recovery code with its hyphens, and some spaces. */
const CODE_LENGTH = 40

/**
 * The fields of the proof that an operation asks for: the current password, and a code of a person with a second factor; or a passkey,
 * which stands for both if it verifies the person. Who has neither has signed in with another provider, and proves it by that sign-in.
 */
export function askProof ({ account, error, needsCode = false, noPassword = false, passkey }: AccountView, texts: Texts): Html {
  const { account: own } = texts
  if (noPassword) return passkey === undefined ? html`` : offer(passkey, texts, { label: texts.passkey.use, isOnly: true })
  const instead = passkey !== undefined && html` data-instead`
  return html`${username(account)}<label for="current_password">${own.currentPassword}</label>
${passwordInput({ name: 'current_password', use: 'current', error, more: instead }, texts)}${needsCode && html`<label for="code">${own.code}</label>
<p class="hint" id="code-hint">${own.codeHint}</p>
<input id="code" name="code" type="text" autocomplete="one-time-code" autocapitalize="none" spellcheck="false" maxlength="${CODE_LENGTH}" required${instead}${describes(error, 'code-hint')}>
`}${passkey !== undefined && offer(passkey, texts, { label: texts.passkey.instead })}`
}

/** A time for people, in UTC. A script shows it in the reader's zone (script.ts). */
export function showTime (timestamp: string, language: Language): Html {
  const text = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short', hourCycle: 'h23', timeZone: 'UTC' }).format(new Date(timestamp))
  return html`<time datetime="${timestamp}">${text} UTC</time>`
}

export function showDate (timestamp: string, language: Language): Html {
  return html`<time datetime="${timestamp}">${new Intl.DateTimeFormat(language, { dateStyle: 'long', timeZone: 'UTC' }).format(new Date(timestamp))}</time>`
}

/** Hidden text for screen readers that distinguishes buttons with the same label. */
export const ofWhat = (what: string | Html, { account: own }: Texts) => html`<span class="hidden">${own.ofWhat({ what })}</span>`
