import { type Html, html } from './html.ts'
import type { Texts } from './texts/en.ts'

/** Says how many personal access tokens end with what a form does. Nothing for a person who has none. */
export const tellTokens = ({ endingTokens: tokens = 0 }: { endingTokens?: number | undefined }, { account: own }: Texts): Html =>
  tokens === 0 ? html`` : html`<p>${own.tokensEnd({ tokens })}</p>\n`
