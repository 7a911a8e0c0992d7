import { fillText } from '../pages/texts/template.ts'
import { renderMail, renderText } from './layout.ts'
import type { MailLook } from './look.ts'
import type { Draft } from './outbox.ts'
import { de } from './texts/de.ts'
import { type MailText, type MailTextSource, en } from './texts/en.ts'

export const MAIL_LANGUAGES = ['en', 'de'] as const
export type MailLanguage = typeof MAIL_LANGUAGES[number]

const TEXTS: Record<MailLanguage, MailTextSource> = { en, de }

export type MailKind = Exclude<keyof typeof en, 'layout'>

/** The language of a stored job; English for an unknown one. */
export function toMailLanguage (text: unknown): MailLanguage {
  return MAIL_LANGUAGES.find((language) => language === text) ?? 'en'
}

export interface MailParts {
  to: string
  /** The URL of the button. */
  link?: string | undefined
  language: MailLanguage
  /** The name of the service, and the values of the other placeholders of this kind. */
  values: { readonly service: string, readonly [name: string]: string }
  look: MailLook
}

/** Composes a mail. It contains no text from users but names of accounts, so that the service cannot be abused to send their texts. */
export function composeMail (kind: MailKind, { to, link, language, values, look }: MailParts): NonNullable<Draft> {
  const { layout, ...texts } = TEXTS[language]
  const filled = Object.entries(texts[kind]).map(([key, text]) => [key, fillText(text, values)])
  const content = { ...Object.fromEntries(filled) as unknown as MailText, language, service: values.service, link, layout }
  return { to, subject: content.subject, text: renderText(content, look), html: renderMail(content, look) }
}
