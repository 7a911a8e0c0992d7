import { showTime } from './account/shell.ts'
import { listUpstreams } from './choose-account.ts'
import type { PageWay, Pages, WayView } from './contract.ts'
import { type Html, html } from './html.ts'
import { legal } from './legal.ts'
import { tellTokens } from './tokens-end.ts'
import type { Texts } from './texts/en.ts'
import { type Context, type Part, alert, buttonLink, describes, hidden, name, passwordInput, strong, titled, username } from './parts.ts'
import { showWay } from './way.ts'

const ACCOUNT_INPUT = html`type="text" inputmode="email" autocomplete="username" autocapitalize="none" autocorrect="off" spellcheck="false" maxlength="254" required autofocus`

const next = (href: string, text: Html | string) => html`<p class="next"><a href="${href}">${text}</a></p>\n`

/** Asks for the account or the address for a mailed link. */
export function askLink ({ kind, action, value, signIn, error }: Pages['ask-link'], context: Context): Part {
  const { texts } = context
  const { common, links } = texts
  const { title, why, field, submit } = kind === 'forgot' ? links.forgot : links.signUp
  return {
    title: titled(title, error, texts),
    body: html`<h1>${title}</h1>
<p>${why}</p>
${alert(error, texts)}<form method="post" action="${action}">
<label for="typed">${field}</label>
<input id="typed" name="typed" value="${value}" ${ACCOUNT_INPUT}${describes(error)}>
${kind === 'sign-up' && legal(context)}<p class="actions"><button class="primary" type="submit">${submit}</button></p>
</form>
${signIn !== undefined && next(signIn, kind === 'forgot' ? common.goBackToSignIn : links.signUp.haveOne)}`
  }
}

/** The page is the same for every name and address, but for what was typed. */
export function linkSent ({ kind, action, typed, again }: Pages['link-sent'], { texts: { links } }: Context): Part {
  const { sent } = links
  return {
    title: sent.title,
    body: html`<h1>${sent.title}</h1>
${again === true && html`<p class="done" role="status">${sent.again}</p>\n`}<p>${(kind === 'forgot' ? sent.forgot : sent.signUp)({ typed: strong(typed) })}</p>
<p class="muted">${sent.hint}</p>
<form method="post" action="${action}">
${hidden('typed', typed)}<p class="actions"><button type="submit" name="again" value="yes">${sent.sendAgain}</button>
<button type="submit" name="correct" value="yes">${sent.correct}</button></p>
</form>`
  }
}

/**
 * Asks for a new password, or for a sign-in with another provider. Submitting the form, or the answer of the provider, spends the link;
 * opening the page does not.
 */
export function setPassword (data: Pages['set-password'], context: Context): Part {
  const { action, token, purpose, account, min, upstreams = [], only, xsrf, signedInAs, error } = data
  const { texts } = context
  const { links } = texts
  const { title, submit } = links.setPassword[purpose]
  const others = listUpstreams({ upstreams, action, token }, context)
  const forAccount = html`<p>${links.setPassword.forAccount({ account: strong(account) })}</p>\n`
  if (only !== undefined) {
    return {
      title: titled(submit, error, texts),
      body: html`<h1>${submit}</h1>
${forAccount}${alert(error, texts)}<p>${texts.upstreams.only({ name: name(only) })}</p>
${purpose === 'sign-up' && legal(context)}${others}`
    }
  }
  return {
    title: titled(title, error, texts),
    body: html`<h1>${title}</h1>
${forAccount}${tellTokens(data, texts)}${alert(error, texts)}<form method="post" action="${action}">
${hidden('token', token)}${xsrf !== undefined && hidden('xsrf', xsrf)}${username(account)}<label for="password">${links.setPassword.field}</label>
${min > 1 && html`<p class="hint" id="hint">${links.setPassword.hint({ characters: min })}</p>\n`}${passwordInput({ name: 'password', use: 'new', error, hint: min > 1 ? 'hint' : undefined, isFirst: true }, texts)}${purpose === 'sign-up' && legal(context)}${signedInAs === undefined
  ? html`<p class="actions"><button class="primary" type="submit">${submit}</button></p>`
  : askToSwitch(account, signedInAs, texts)}
</form>${others}`
  }
}

/** The buttons for somebody whose browser is signed in to another account. */
const askToSwitch = (account: string, signedInAs: string, { common, links: { setPassword: own } }: Texts): Html => html`
<p>${common.signedInAs({ account: strong(signedInAs) })}</p>
<p class="actions"><button class="primary" type="submit" name="switch" value="yes">${own.switch({ account: name(account) })}</button>
<button type="submit">${own.stay({ account: name(signedInAs) })}</button></p>`

/** Asks for confirmation of the link's action, so that a program that opens links has no effect. */
export function confirmLink ({ action, token, purpose, address }: Pages['confirm-link'], { texts: { links } }: Context): Part {
  const { title, text, submit } = links[purpose]
  return {
    title,
    body: html`<h1>${title}</h1>
<p>${text}</p>
${address !== undefined && html`<p class="account"><span><strong>${name(address)}</strong></span></p>\n`}<form method="post" action="${action}">
${hidden('token', token)}<p class="actions"><button class="primary" type="submit">${submit}</button></p>
</form>`
  }
}

/** The ways in of a person. With a place, what is known of where each was added. */
function listWays (ways: readonly WayView[], { texts: { links: { ways: texts } }, language }: Context): Html {
  return html`<ul>
${ways.map(({ kind, name: given, at, place }) => {
  const about = { way: kind === 'upstream' && given !== undefined ? strong(given) : html`<strong>${texts[kind]}</strong>`, time: showTime(at, language) }
  return html`<li>${place === undefined ? texts.added(about) : texts.addedFrom({ ...about, place: name(place) })}</li>\n`
})}</ul>\n`
}

/** Asks for confirmation before everything goes that was added since the earliest act that can be undone. It says what stays, too. */
export function confirmUndo (view: Pages['confirm-undo'], context: Context): Part {
  const { action, token, account, goes, stays, address, taken, only, losesOnly = false } = view
  const { links: { undo: texts, setPassword } } = context.texts
  const say = (text: Html | string | false) => text !== false && html`<p>${text}</p>\n`
  return {
    title: texts.title,
    body: html`<h1>${texts.title}</h1>
<p>${setPassword.forAccount({ account: strong(account) })}</p>
${goes.length > 0 ? html`<p>${texts.goes}</p>\n${listWays(goes, context)}` : say(texts.nothing)}${say(address !== undefined && texts.address({ address: strong(address) }))}${say(taken !== undefined && texts.taken({ address: strong(taken) }))}${stays.length > 0 && html`<p>${texts.stays}</p>\n${listWays(stays, context)}`}${say(only === undefined ? texts.ends : texts.endsOnly({ upstream: name(only) }))}${say(only !== undefined && losesOnly && texts.losesOnly({ upstream: name(only) }))}${goes.length > 0 && say(texts.own)}${tellTokens(view, context.texts)}<form method="post" action="${action}">
${hidden('token', token)}<p class="actions"><button class="danger" type="submit">${texts.submit}</button></p>
</form>`
  }
}

/** The ways in that stay beside a new password or after an undo, and the way to what can still be undone. */
function reviewWays (what: Pages['link-done']['what'], { stays, undo }: NonNullable<Pages['link-done']['review']>, context: Context): Html {
  const { review, undo: undone } = context.texts.links
  return html`${stays.length > 0 && html`<p>${what === 'undone' ? undone.stays : review.stays}</p>\n${listWays(stays, context)}`}${undo !== undefined && html`<p>${review.why}</p>\n<p class="actions"><a class="button" href="${undo}">${review.undo}</a></p>\n`}`
}

/**
 * Asks for confirmation of a change of the address. The page names the account and the address, because the reader may be somebody
 * whose address a stranger has typed.
 */
export function confirmChange ({ action, account, address, signedInAs, token, xsrf }: Pages['confirm-change'], { texts: { common, links } }: Context): Part {
  const { title, text, stranger, signIn, other, signOut, submit } = links.change
  const isOther = signedInAs !== undefined && signedInAs !== account
  const label = signedInAs === undefined ? signIn : isOther ? signOut : submit
  return {
    title,
    body: html`<h1>${title}</h1>
<p>${text({ account: strong(account), address: strong(address) })}</p>
${signedInAs !== undefined && html`<p>${common.signedInAs({ account: strong(signedInAs) })}${isOther && html` ${other}`}</p>\n`}<form method="post" action="${action}">
${token !== undefined && hidden('token', token)}${xsrf !== undefined && hidden('xsrf', xsrf)}<p class="actions"><button class="primary" type="submit"${isOther && html` name="sign-out" value="yes"`}>${label}</button></p>
</form>
<p class="muted">${stranger}</p>`
  }
}

const nameNext = ({ client }: PageWay, { links }: Context['texts']): Html | string =>
  client === undefined ? links.continue : links.continueTo({ app: name(client.name) })

/** The button that leads on from a new password or account. Without a sign-in, somebody who has just chosen a password would enter it there. */
function leadOn ({ what, to, signIn: begun, isElsewhere = false }: Pages['link-done'], { texts, home }: Context): Html {
  const { common, links, signIn } = texts
  if (begun?.is === 'next') return buttonLink(begun.to, links.continue)
  if (to?.vouched === true) return buttonLink(to.uri, nameNext(to, texts))
  const signsIn = begun === undefined && !isElsewhere && (what === 'password' || what === 'account' || what === 'account-linked')
  const label = signsIn ? signIn.submit : common.toAccount
  const own = home !== undefined && (signsIn || begun?.is === 'done' ? buttonLink : next)(home, label)
  return html`${own}${to !== undefined && showWay(to, nameNext(to, texts), texts)}`
}

export function linkDone (data: Pages['link-done'], context: Context): Part {
  const { what, review, signIn, isElsewhere = false } = data
  const { links } = context.texts
  const { title, text } = links.done[what]
  const entered = signIn && (
    signIn.is === 'other' ? links.done.other({ account: strong(signIn.account) }) : links.done[signIn.is === 'done' && what === 'password' ? 'doneReset' : signIn.is]
  )
  return {
    title,
    body: html`<h1>${title}</h1>
<p>${entered ?? (isElsewhere ? links.done.elsewhere : text)}</p>
${review !== undefined && reviewWays(what, review, context)}${leadOn(data, context)}`
  }
}
