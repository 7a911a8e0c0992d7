import type { AccountView, FactorKind, Pages } from '../contract.ts'
import { type Html, html } from '../html.ts'
import { type Context, type Part, describes, hidden, name } from '../parts.ts'
import type { Message, Texts } from '../texts/en.ts'
import { joinDetails, namePlace } from './sessions.ts'
import { askProof, frame, ofWhat, showTime } from './shell.ts'

export const MAX_NAME = 64

const nameOf = (given: string | undefined, { account: own }: Texts, kind: FactorKind = 'totp'): Html => (
  given === undefined || given.trim() === '' ? html`${kind === 'passkey' ? own.passkey : own.authenticator}` : name(given))

const check = (field: string, text: string, more: Html | false = false) =>
  html`<label class="check"><input name="${field}" type="checkbox" value="yes"${more}> ${text}</label>\n`

export function factors (view: Pages['account-factors'], { texts, language }: Context): Part {
  const { apps, passkeys, codes, mayAdd, mayAddPasskey, base, xsrf } = view
  const { account: own } = texts
  const all = [...passkeys.map((one) => ({ ...one, kind: 'passkey' as const })), ...apps.map((one) => ({ ...one, kind: 'totp' as const, foreign: false, place: undefined }))]
  const toLink = (page: string, id: string) => `${base}/factors/${page}?${new URLSearchParams({ id }).toString()}`
  return frame(view, texts, html`<p>${own.factorsWhy}</p>
${all.length === 0
  ? html`<p>${own.noFactors}</p>`
  : html`<p class="muted">${own.timesInUtc}</p>
<ul class="entries">
${all.map(({ id, kind, name: given, at, last_used_at, foreign, place }) => html`<li>
<div><h2>${nameOf(given, texts, kind)}</h2>
<p class="muted">${own.addedAt({ time: showTime(at, language) })}${last_used_at !== undefined && html`<br>${own.lastUsedAt({ time: showTime(last_used_at, language) })}`}${place !== undefined && html`<br>${own.from({ place: joinDetails([namePlace(place, texts), place.address]) })}`}</p>
${foreign === true && html`<p class="muted">${own.foreignPasskey}</p>\n`}</div>
<p><a href="${toLink('rename', id)}">${own.rename}${ofWhat(nameOf(given, texts, kind), texts)}</a>
<a href="${toLink('remove', id)}">${own.remove}${ofWhat(nameOf(given, texts, kind), texts)}</a></p>
</li>\n`)}</ul>`}
${codes !== undefined && html`<h2>${own.codes}</h2>
<p>${own.codesLeft({ count: codes })}</p>
<p class="next"><a href="${base}/factors/codes">${own.newCodes}</a></p>\n`}${mayAddPasskey && html`<h2>${own.addPasskey}</h2>
<p>${own.addPasskeyWhy}</p>
<p class="next"><a href="${base}/factors/passkeys">${own.addPasskey}</a></p>\n`}${mayAdd && html`<h2>${own.addApp}</h2>
<p>${own.addAppWhy}</p>
<form method="post" action="${base}/factors">
${hidden('xsrf', xsrf)}<label for="name">${own.appName}</label>
<p class="hint" id="name-hint">${own.appNameHint}</p>
<input id="name" name="name" type="text" autocomplete="off" maxlength="${MAX_NAME}" aria-describedby="name-hint">
${askProof(view, texts)}<p class="actions"><button class="primary" type="submit">${own.addApp}</button></p>
</form>`}`)
}

/** Where the forms of an enrolment lead: a page of the account, or a step of a sign-in. */
export interface EnrolmentForms {
  action: string
  /** The hidden fields. */
  fields: Html
  /** What follows the button of a form. */
  actions?: Html
  /** What follows the form. */
  after?: Html
  error?: Message | undefined
}

/** The QR code of a new authenticator app, and the form for its first right code. */
export function appForm (
  { seed, uri, qr, proved }: Pick<Pages['account-factor-add'], 'seed' | 'uri' | 'qr' | 'proved'>,
  { action, fields, actions, after, error }: EnrolmentForms, { account: own, common }: Texts
): Html {
  const submit = html`<p class="actions"><button class="primary" type="submit">${common.continue}</button>${actions}</p>
</form>${after}`
  if (proved) {
    return html`<p>${own.proved}</p>
<form method="post" action="${action}">
${fields}${submit}`
  }
  return html`<p>${own.scan}</p>
<svg class="qr" role="img" aria-label="${own.qr}" viewBox="0 0 ${qr.size} ${qr.size}" shape-rendering="crispEdges"><rect width="100%" height="100%" fill="#fff"/><path d="${qr.path}" fill="#000"/></svg>
<p>${own.typeSeed}</p>
<p class="code seed"><code id="seed">${seed.replaceAll(/.{4}(?=.)/g, '$& ')}</code></p>
<p class="next"><a href="${uri}">${own.openApp}</a></p>
<form method="post" action="${action}">
${fields}<label for="code">${own.firstCode}</label>
<input id="code" name="code" type="text" inputmode="numeric" pattern="[0-9 ]*" autocomplete="one-time-code" maxlength="7" required${describes(error)}>
${submit}`
}

/** Recovery codes, and the form that confirms that they were kept. */
export function codesForm (
  shown: readonly string[], account: string, submit: string, { action, fields, actions, after }: EnrolmentForms, { account: own }: Texts
): Html {
  const text = [own.codesOf({ account }), ...shown].map((line) => typeof line === 'string' ? line : line.text).join('\r\n')
  return html`<p>${own.keepCodes}</p>
<ul class="codes" id="codes">
${shown.map((code) => html`<li><code>${code}</code></li>\n`)}</ul>
<p class="next"><a href="data:text/plain;charset=utf-8,${encodeURIComponent(text)}" download="recovery-codes.txt">${own.downloadCodes}</a></p>
<p class="muted">${own.printCodes}</p>
<form method="post" action="${action}">
${fields}${check('kept', own.kept, html` required`)}<p class="actions"><button class="primary" type="submit">${submit}</button>${actions}</p>
</form>${after}`
}

const cancel = ({ base }: AccountView, { common }: Texts): Html => html`
<p class="next"><a href="${base}/factors">${common.cancel}</a></p>`

export function addFactor (view: Pages['account-factor-add'], { texts }: Context): Part {
  const { id, error, base, xsrf } = view
  const action = `${base}/factors/add?${new URLSearchParams({ id }).toString()}`
  return frame(view, texts, appForm(view, { action, fields: hidden('xsrf', xsrf), after: cancel(view, texts), error }, texts), html`${texts.account.addApp}`)
}

export function removeFactor (view: Pages['account-factor-remove'], { texts }: Context): Part {
  const { id, kind, name: given, isLast, base, xsrf } = view
  const { account: own, common } = texts
  return frame(view, texts, html`<p>${isLast ? own.removeLastWhy : kind === 'passkey' ? own.removePasskeyWhy : own.removeWhy}</p>
<form method="post" action="${base}/factors/remove?${new URLSearchParams({ id }).toString()}">
${hidden('xsrf', xsrf)}${askProof(view, texts)}${check('end_sessions', own.endOthers, html` checked`)}<p class="actions"><button class="danger" type="submit">${own.remove}</button></p>
</form>
<p class="next"><a href="${base}/factors">${common.cancel}</a></p>`, own.removeQuestion({ what: nameOf(given, texts, kind) }))
}

export function renameFactor (view: Pages['account-factor-rename'], { texts }: Context): Part {
  const { id, kind, name: given, base, xsrf } = view
  const { account: own, common } = texts
  return frame(view, texts, html`<form method="post" action="${base}/factors/rename?${new URLSearchParams({ id }).toString()}">
${hidden('xsrf', xsrf)}<label for="name">${own.name}</label>
<p class="hint" id="name-hint">${own.appNameHint}</p>
<input id="name" name="name" type="text" autocomplete="off" maxlength="${MAX_NAME}" value="${given}" aria-describedby="name-hint">
<p class="actions"><button class="primary" type="submit">${own.save}</button></p>
</form>
<p class="next"><a href="${base}/factors">${common.cancel}</a></p>`, own.renameQuestion({ what: nameOf(given, texts, kind) }))
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
  const fields = html`${hidden('xsrf', xsrf)}${hidden('codes', id)}${factor !== undefined && hidden('factor', factor)}`
  const forms = { action: `${base}/factors/codes`, fields, after: cancel(view, texts) }
  return frame(view, texts, codesForm(shown, account, factor === undefined ? own.useCodes : own.turnOn, forms, texts), html`${own.codes}`)
}
