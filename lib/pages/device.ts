import type { Pages } from './contract.ts'
import { html } from './html.ts'
import { type Part, alert, describes, hidden, mark, name, titled } from './parts.ts'

export function device ({ action, xsrf, code, error }: Pages['device']): Part {
  return {
    title: titled('Connect a device', error),
    body: html`<h1>Connect a device</h1>
<p>Only go on if you are signing in on a device of your own.</p>
${alert(error)}<form method="post" action="${action}">
${hidden('xsrf', xsrf)}<label for="user_code">The code that the device shows</label>
<p class="hint" id="hint">Eight letters, such as WDJB-MJHT</p>
<input class="letters" id="user_code" name="user_code" type="text" autocomplete="off" autocapitalize="characters" autocorrect="off" spellcheck="false" maxlength="64" required value="${code}"${describes(error, 'hint')} autofocus>
<p class="deeds"><button class="first" type="submit">Continue</button></p>
</form>`
  }
}

export function deviceConfirm ({ action, xsrf, code, client, device }: Pages['device-confirm']): Part {
  const asked = device?.ip !== undefined && html`<p class="quiet">It asked from ${name(device.ip)}${
    device.ua !== undefined && device.ua !== '' && html`, as ${name(device.ua)}`}.</p>\n`
  return {
    title: 'Is this your device?',
    body: html`${mark(client.name)}
<h1>Is this your device?</h1>
<p><strong>${name(client.name)}</strong> asks to sign in as you. Go on only if you started it, and if the device shows this code:</p>
<p class="code"><code>${code}</code></p>
${asked}<form method="post" action="${action}">
${hidden('xsrf', xsrf)}${hidden('user_code', code)}${hidden('confirm', 'yes')}<p class="deeds"><button class="first" type="submit">It is mine</button>
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
