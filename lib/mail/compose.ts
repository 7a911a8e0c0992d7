import type { Language, Languages } from '../pages/texts/language.ts'
import { html } from '../pages/html.ts'
import { dropLink, fillLinked, fillText, isLinked } from '../pages/texts/template.ts'
import { linkHelp, renderMail, renderText } from './layout.ts'
import type { MailLook } from './look.ts'
import type { Draft } from './delivery.ts'
import { type MailText, en } from './texts/en.ts'
import { type MailKind, getLayoutTexts, getMailTexts } from './texts/index.ts'

export { type MailKind } from './texts/index.ts'

interface MailParts {
  to: string
  /** The URL of the button. */
  link?: string | undefined
  language: Language
  languages: Languages
  /** The name of the service, and the values of the other placeholders of this kind. */
  values: { readonly service: string, readonly [name: string]: string }
  look: MailLook
}

/** Composes a mail. It contains no text from users but names of accounts, so that the service cannot be abused to send their texts. */
export function composeMail (kind: MailKind, { to, link, language, languages, values, look }: MailParts): NonNullable<Draft> {
  const layout = getLayoutTexts(languages, language)
  const texts = getMailTexts(kind, languages, language)
  const templates = Object.entries<string>({ ...texts, ...(values['tokens'] !== undefined && { text: `${texts.text}\n\n${layout.tokensEnded}` }) })
  const english: Readonly<Record<string, string>> = en[kind]
  const fill = <T>(write: (text: string, hasLink: boolean) => T) =>
    Object.fromEntries(templates.map(([key, text]) => [key, write(text, isLinked(english[key] ?? ''))])) as unknown as MailText<T>
  const frame = { language, service: values.service, link, layout }
  const plain = { ...frame, ...fill((text, hasLink) => fillText(hasLink ? dropLink(text) : text, values)) }
  const rich = { ...frame, ...fill((text, hasLink) => hasLink ? fillLinked(text, values, linkHelp(look)) : html`${fillText(text, values)}`) }
  return { to, subject: plain.subject, text: renderText(plain, look), html: renderMail(rich, look) }
}
