import type { Language, Languages } from '../pages/texts/language.ts'
import { fillText } from '../pages/texts/template.ts'
import { renderMail, renderText } from './layout.ts'
import type { MailLook } from './look.ts'
import type { Draft } from './delivery.ts'
import type { MailText } from './texts/en.ts'
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
  const templates = Object.entries<string>({ ...getMailTexts(kind, languages, language) })
  const texts = Object.fromEntries(templates.map(([key, text]) => [key, fillText(text, values)])) as unknown as MailText
  const content = { ...texts, language, service: values.service, link, layout: getLayoutTexts(languages, language) }
  return { to, subject: content.subject, text: renderText(content, look), html: renderMail(content, look) }
}
