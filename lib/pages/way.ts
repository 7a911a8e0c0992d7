import type { PageWay } from './contract.ts'
import { type Html, html } from './html.ts'
import { type Context, name } from './parts.ts'

/** Where a URI of an app leads. A client can choose its name freely, but not its address. */
export function describeTarget (uri: string, { consent: own }: Context['texts']): Html | undefined {
  if (!URL.canParse(uri)) return undefined
  const { protocol, hostname, host } = new URL(uri)
  if (!/^https?:$/.test(protocol)) return own.targetLinks({ scheme: name(protocol) })
  if (/^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname)) return own.targetDevice({ host: name(host) })
  return html`<bdi>${host}</bdi>`
}

/** A link to an app. Any user can register an app, so the page warns of one that the operator does not vouch for, and says where it leads. */
export function showWay ({ uri, vouched }: PageWay, text: Html | string, texts: Context['texts']): Html {
  const target = vouched ? undefined : describeTarget(uri, texts) ?? html`<bdi>${uri}</bdi>`
  return html`${target !== undefined && html`<p class="muted">${texts.common.uncheckedApp({ target })}</p>\n`}<p class="next"><a${!vouched && html` rel="noreferrer"`} href="${uri}">${text}</a></p>\n`
}
