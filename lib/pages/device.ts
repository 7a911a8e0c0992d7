import { describeScope } from './consent.ts'
import type { Pages } from './contract.ts'
import { html } from './html.ts'
import { type Part, alert, describes, hidden, mark, name, titled } from './parts.ts'

export function device ({ action, xsrf, code, error }: Pages['device']): Part {
  return {
    title: titled('Connect a device', error),
    body: html`<h1>Connect a device</h1>
<p>Continue only if you are signing in on your own device.</p>
${alert(error)}<form method="post" action="${action}">
${hidden('xsrf', xsrf)}<label for="user_code">Code shown on the device</label>
<p class="hint" id="hint">Eight letters, such as WDJB-MJHT</p>
<input class="letters" id="user_code" name="user_code" type="text" autocomplete="off" autocapitalize="characters" autocorrect="off" spellcheck="false" maxlength="64" required value="${code}"${describes(error, 'hint')} autofocus>
<p class="actions"><button class="primary" type="submit">Continue</button></p>
</form>`
  }
}

/**
 * Whoever sends a link with a code wants the reader to continue without a look at it. So the code is shown, and not filled in.
 */
export function deviceCompare ({ action, xsrf, code }: Pages['device-compare']): Part {
  return {
    title: 'Connect a device',
    body: html`<h1>Does your device show this code?</h1>
<p class="code"><code>${code}</code></p>
<p>Continue only if you have just started to sign in on your own device, and it shows the same code now. If somebody sent you this link or code, close this page.</p>
<form method="post" action="${action}">
${hidden('xsrf', xsrf)}${hidden('user_code', code)}<p class="actions"><button class="primary" type="submit">My device shows this code</button></p>
</form>
<p class="next"><a href="${action}">Type another code</a></p>`
  }
}

export function deviceConfirm ({ action, xsrf, code, client, scopes, account, ip }: Pages['device-confirm']): Part {
  return {
    title: 'Is this your device?',
    body: html`${mark(client.name)}
<h1>Is this your device?</h1>
<p><strong>${name(client.name)}</strong> asks to sign in as you. Continue only if you started this and the device shows this code:</p>
<p class="code"><code>${code}</code></p>
${account === undefined
  ? html`<p>You will be asked to sign in.</p>`
  : html`<p class="account"><span>You are signed in as <strong>${name(account)}</strong>.</span></p>`}
<p id="request">The app asks to:</p>
<ul class="scopes" aria-labelledby="request">
${scopes.map((scope) => html`<li>${describeScope(scope)}</li>\n`)}</ul>
${ip !== undefined && html`<p class="muted">The request came from ${name(ip)}.</p>\n`}<form method="post" action="${action}">
${hidden('xsrf', xsrf)}${hidden('user_code', code)}${hidden('confirm', 'yes')}<p class="actions"><button class="primary" type="submit">It is mine</button>
<button type="submit" name="abort" value="yes">It is not</button></p>
</form>`
  }
}

export function deviceDone ({ client }: Pages['device-done']): Part {
  return {
    title: 'Device connected',
    body: html`<h1>Device connected</h1>
<p>You are signed in to <strong>${name(client.name)}</strong> on the device. You can close this page.</p>`
  }
}
