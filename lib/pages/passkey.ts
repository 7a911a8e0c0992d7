import { type Html, html } from './html.ts'
import type { PasskeyView, Signals } from './script.ts'
import type { Texts } from './texts/en.ts'

/** Characters of the last part of a name in HTML. */
type Field = 'assertion' | 'attestation'

/**
 * The button and the texts of a passkey, within a form. Without the script there is no button.
 * @param options.isOnly whether the form has no other purpose: then it says why there is no button
 */
export function passkey (
  view: PasskeyView, { passkey: own }: Texts, { label, isOnly = false, isPrimary = false }: { label: string, isOnly?: boolean, isPrimary?: boolean }
): Html {
  const field: Field = view.mode === 'create' ? 'attestation' : 'assertion'
  return html`<div class="passkey" data-passkey="${JSON.stringify(view)}">
<input type="hidden" name="${field}" value="" data-part="field">
<p class="error" role="alert" data-part="failed" hidden>${own.failed}</p>
<p class="muted" data-part="none"${!isOnly && html` hidden`}>${own.none}</p>
<button type="button"${isPrimary && html` class="primary"`} data-part="button" hidden>${label}</button>
</div>
`
}

/** What the browser is told about the passkeys that there are. */
export const tell = (signals: Signals | undefined): Html | false => signals !== undefined && html`<div data-signals="${JSON.stringify(signals)}" hidden></div>\n`
