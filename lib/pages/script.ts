import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** The script of passkeys, see browser/passkeys.js. */
interface Script {
  text: string
  /** The last part of its URL: other content has another name, so browsers may keep it for ever. */
  file: string
}

const HASH_LENGTH = 16

let script: Script | undefined

/** Reads the script at its first use. */
export function readScript (): Script {
  if (script === undefined) {
    const text = readFileSync(new URL('./browser/passkeys.js', import.meta.url), 'utf8')
    script = { text, file: `passkeys-${hash('sha256', text, 'base64url').slice(0, HASH_LENGTH)}.js` }
  }
  return script
}

/** What a page does with passkeys, in a container for the script. */
export interface PasskeyView {
  mode: 'get' | 'create'
  /** Whether the browser offers passkeys among the accounts that it fills in. */
  conditional?: boolean
  /** The options of the browser's call, as JSON. */
  options: object
}

/** What a browser is told about the passkeys that there are: the details by the name of the browser's method. */
export type Signals = Partial<Record<'signalUnknownCredential' | 'signalAllAcceptedCredentials' | 'signalCurrentUserDetails', object>>

/** What a page may need the script for. */
export interface ScriptView {
  passkey?: PasskeyView
  signals?: Signals
}

/**
 * Shows times in the reader's zone. Without it they stay in UTC, and say so. It is part of the page, because it is shorter than the headers
 * of a request.
 */
export const TIMES = `for (const time of document.querySelectorAll('time')) {
  const text = time.textContent
  if (text.endsWith(' UTC')) time.textContent = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium', timeStyle: 'short', hourCycle: 'h23' }).format(new Date(time.dateTime))
}
for (const hint of document.querySelectorAll('[data-utc]')) hint.hidden = true`

/** Shows a password while its button is pressed. A browser stores no password of a field that is sent as a text. */
export const SHOW_PASSWORD = `for (const button of document.querySelectorAll('[data-show]')) {
  const field = document.getElementById(button.dataset.show)
  const show = (isShown) => {
    field.type = isShown ? 'text' : 'password'
    button.setAttribute('aria-pressed', isShown)
  }
  button.hidden = false
  button.addEventListener('click', () => show(field.type === 'password'))
  field.form.addEventListener('submit', () => show(false))
}`

/** The scripts that are part of a page: one for times, and not only dates, and one for a password. Texts of people are escaped, so they ask for none. */
export const listScripts = (page: string): string[] => [
  ...page.includes(' UTC</time>') ? [TIMES] : [],
  ...page.includes(' data-show="') ? [SHOW_PASSWORD] : []
]

/** Whether a page needs the script of passkeys: only these pages allow it to run. */
export const needsScript = ({ passkey, signals }: ScriptView): boolean => passkey !== undefined || signals !== undefined
