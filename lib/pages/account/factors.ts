import type { Pages } from '../contract.ts'
import { type Html, html } from '../html.ts'
import { type Context, type Part, describes, hidden } from '../parts.ts'
import type { Message, Texts } from '../texts/en.ts'
import { tellTokens } from '../tokens-end.ts'
import { cancel, nameFactor, showFactorDetails, toFactorLink } from './method-parts.ts'
import { askProof, frame } from './shell.ts'

export const MAX_NAME = 64

const check = (field: string, text: string, more: Html | false = false) =>
  html`<label class="check"><input name="${field}" type="checkbox" value="yes"${more}> ${text}</label>\n`

/** Asks for a name and the proof before an authenticator app is added. */
export function addApp (view: Pages['account-app-add'], { texts }: Context): Part {
  const { name, base, xsrf } = view
  const { account: own, common } = texts
  return frame(view, texts, html`<p>${own.addAppWhy}</p>
<form method="post" action="${base}/factors">
${hidden('xsrf', xsrf)}<label for="name">${own.appName}</label>
<p class="hint" id="name-hint">${own.appNameHint}</p>
<input id="name" name="name" type="text" autocomplete="off" maxlength="${MAX_NAME}" value="${name}" aria-describedby="name-hint">
${askProof(view, texts)}<p class="actions"><button class="primary" type="submit">${common.continue}</button></p>
</form>${cancel(view, texts)}`, html`${own.addApp}`)
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

export function addFactor (view: Pages['account-factor-add'], { texts }: Context): Part {
  const { id, error, base, xsrf } = view
  const action = toFactorLink(base, 'add', id)
  return frame(view, texts, appForm(view, { action, fields: hidden('xsrf', xsrf), after: cancel(view, texts), error }, texts), html`${texts.account.addApp}`)
}

export function removeFactor (view: Pages['account-factor-remove'], { texts }: Context): Part {
  const { id, kind, name: given, isLast, base, xsrf } = view
  const { account: own } = texts
  return frame(view, texts, html`<p>${isLast ? own.removeLastWhy : kind === 'passkey' ? own.removePasskeyWhy : own.removeWhy}</p>
<form method="post" action="${toFactorLink(base, 'remove', id)}">
${hidden('xsrf', xsrf)}${askProof(view, texts)}${check('end_sessions', own.endOthers, html` checked`)}${tellTokens(view, texts)}<p class="actions"><button class="danger" type="submit">${own.remove}</button></p>
</form>${cancel(view, texts)}`, own.removeQuestion({ what: nameFactor(given, texts, kind) }))
}

/** One factor: the form of its name. The page of its removal is apart, at the end. */
export function factor (view: Pages['account-factor'], context: Context): Part {
  const { texts } = context
  const { id, kind, name: given, base, xsrf } = view
  const { account: own } = texts
  const called = nameFactor(given, texts, kind)
  return frame(view, texts, html`${showFactorDetails(view, context)}<form method="post" action="${toFactorLink(base, 'rename', id)}">
${hidden('xsrf', xsrf)}<label for="name">${own.name}</label>
<p class="hint" id="name-hint">${own.appNameHint}</p>
<input id="name" name="name" type="text" autocomplete="off" maxlength="${MAX_NAME}" value="${given}" aria-describedby="name-hint">
<p class="actions"><button class="primary" type="submit">${own.save}</button></p>
</form>${cancel(view, texts)}
<p class="next"><a href="${toFactorLink(base, 'remove', id)}">${own.removeLink}</a></p>`, called)
}

export function codes (view: Pages['account-factor-codes'], { texts }: Context): Part {
  const { codes: shown, id, factor, account, base, xsrf } = view
  const { account: own } = texts
  if (shown === undefined || id === undefined) {
    return frame(view, texts, html`<p>${own.newCodesWhy}</p>
<form method="post" action="${base}/factors/codes">
${hidden('xsrf', xsrf)}${askProof(view, texts)}<p class="actions"><button class="primary" type="submit">${own.newCodes}</button></p>
</form>${cancel(view, texts)}`, html`${own.codes}`)
  }
  const fields = html`${hidden('xsrf', xsrf)}${hidden('codes', id)}${factor !== undefined && hidden('factor', factor)}`
  const forms = { action: `${base}/factors/codes`, fields, after: cancel(view, texts) }
  const isFirst = factor !== undefined
  const form = codesForm(shown, account, isFirst ? own.turnOn : own.useCodes, forms, texts)
  return frame(view, texts, html`${isFirst && html`<p>${own.almostOn}</p>\n`}${form}`, html`${own.codes}`)
}
