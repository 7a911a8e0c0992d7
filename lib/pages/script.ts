import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** The only script of the pages, see browser/passkeys.js. */
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

/** Whether a page needs the script: only these pages allow it to run. */
export const needsScript = ({ passkey, signals }: ScriptView): boolean => passkey !== undefined || signals !== undefined
