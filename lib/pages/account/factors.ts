import type { Pages } from '../contract.ts'
import { type Html, html } from '../html.ts'
import { type Context, type Part, describes, hidden, name } from '../parts.ts'
import type { Texts } from '../texts/en.ts'
import { askProof, frame, ofWhat, showTime } from './shell.ts'

const MAX_NAME = 64

const nameOf = (given: string | undefined, { account: own }: Texts): Html => given === undefined || given.trim() === '' ? html`${own.authenticator}` : name(given)

const check = (field: string, text: string, more: Html | false = false) =>
  html`<label class="check"><input name="${field}" type="checkbox" value="yes"${more}> ${text}</label>\n`

export function factors (view: Pages['account-factors'], { texts, language }: Context): Part {
  const { apps, codes, mayAdd, base, xsrf } = view
  const { account: own } = texts
  return frame(view, texts, html`<p>${own.factorsWhy}</p>
${apps.length === 0
  ? html`<p>${own.noFactors}</p>`
  : html`<p class="muted">${own.timesInUtc}</p>
<ul class="entries">
${apps.map(({ id, name: given, at, last_used_at }) => html`<li>
<div><h2>${nameOf(given, texts)}</h2>
<p class="muted">${own.addedAt({ time: showTime(at, language) })}${last_used_at !== undefined && html`<br>${own.lastUsedAt({ time: showTime(last_used_at, language) })}`}</p></div>
<a href="${base}/factors/remove?${new URLSearchParams({ id }).toString()}">${own.remove}${ofWhat(nameOf(given, texts), texts)}</a>
</li>\n`)}</ul>`}
${codes !== undefined && html`<h2>${own.codes}</h2>
<p>${own.codesLeft({ count: codes })}</p>
<p class="next"><a href="${base}/factors/codes">${own.newCodes}</a></p>\n`}${mayAdd && html`<h2>${own.addApp}</h2>
<p>${own.addAppWhy}</p>
<form method="post" action="${base}/factors">
${hidden('xsrf', xsrf)}<label for="name">${own.appName}</label>
<p class="hint" id="name-hint">${own.appNameHint}</p>
<input id="name" name="name" type="text" autocomplete="off" maxlength="${MAX_NAME}" aria-describedby="name-hint">
${askProof(view, texts)}<p class="actions"><button class="primary" type="submit">${own.addApp}</button></p>
</form>`}`)
}

export function addFactor (view: Pages['account-factor-add'], { texts }: Context): Part {
  const { id, seed, uri, qr, proved, error, base, xsrf } = view
  const { account: own, common } = texts
  const action = `${base}/factors/add?${new URLSearchParams({ id }).toString()}`
  const back = html`
<p class="next"><a href="${base}/factors">${common.cancel}</a></p>`
  if (proved) {
    return frame(view, texts, html`<p>${own.proved}</p>
<form method="post" action="${action}">
${hidden('xsrf', xsrf)}<p class="actions"><button class="primary" type="submit">${common.continue}</button></p>
</form>${back}`, html`${own.addApp}`)
  }
  return frame(view, texts, html`<p>${own.scan}</p>
<svg class="qr" role="img" aria-label="${own.qr}" viewBox="0 0 ${qr.size} ${qr.size}" shape-rendering="crispEdges"><rect width="100%" height="100%" fill="#fff"/><path d="${qr.path}" fill="#000"/></svg>
<p>${own.typeSeed}</p>
<p class="code seed"><code id="seed">${seed.replaceAll(/.{4}(?=.)/g, '$& ')}</code></p>
<p class="next"><a href="${uri}">${own.openApp}</a></p>
<form method="post" action="${action}">
${hidden('xsrf', xsrf)}<label for="code">${own.firstCode}</label>
<input id="code" name="code" type="text" inputmode="numeric" pattern="[0-9 ]*" autocomplete="one-time-code" maxlength="7" required${describes(error)}>
<p class="actions"><button class="primary" type="submit">${common.continue}</button></p>
</form>${back}`, html`${own.addApp}`)
}

export function removeFactor (view: Pages['account-factor-remove'], { texts }: Context): Part {
  const { id, name: given, isLast, base, xsrf } = view
  const { account: own, common } = texts
  return frame(view, texts, html`<p>${isLast ? own.removeLastWhy : own.removeWhy}</p>
<form method="post" action="${base}/factors/remove?${new URLSearchParams({ id }).toString()}">
${hidden('xsrf', xsrf)}${askProof(view, texts)}${check('end_sessions', own.endOthers, html` checked`)}<p class="actions"><button class="danger" type="submit">${own.remove}</button></p>
</form>
<p class="next"><a href="${base}/factors">${common.cancel}</a></p>`, own.removeQuestion({ what: nameOf(given, texts) }))
}

export function codes (view: Pages['account-factor-codes'], { texts }: Context): Part {
  const { codes: shown, id, factor, account, base, xsrf } = view
  const { account: own, common } = texts
  if (shown === undefined || id === undefined) {
    return frame(view, texts, html`<p>${own.newCodesWhy}</p>
<form method="post" action="${base}/factors/codes">
${hidden('xsrf', xsrf)}${askProof(view, texts)}<p class="actions"><button class="primary" type="submit">${own.newCodes}</button></p>
</form>
<p class="next"><a href="${base}/factors">${common.cancel}</a></p>`, html`${own.codes}`)
  }
  const text = [own.codesOf({ account: `${account}` }), ...shown].map((line) => typeof line === 'string' ? line : line.text).join('\r\n')
  return frame(view, texts, html`<p>${own.keepCodes}</p>
<ul class="codes" id="codes">
${shown.map((code) => html`<li><code>${code}</code></li>\n`)}</ul>
<p class="next"><a href="data:text/plain;charset=utf-8,${encodeURIComponent(text)}" download="recovery-codes.txt">${own.downloadCodes}</a></p>
<p class="muted">${own.printCodes}</p>
<form method="post" action="${base}/factors/codes">
${hidden('xsrf', xsrf)}${hidden('codes', id)}${factor !== undefined && hidden('factor', factor)}${check('kept', own.kept, html` required`)}<p class="actions"><button class="primary" type="submit">${factor === undefined ? own.useCodes : own.turnOn}</button></p>
</form>
<p class="next"><a href="${base}/factors">${common.cancel}</a></p>`, html`${own.codes}`)
}
