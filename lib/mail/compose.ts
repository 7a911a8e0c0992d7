import { html } from '../pages/html.ts'
import { de } from './texts/de.ts'
import { type MailAbout, type MailText, type MailTexts, en } from './texts/en.ts'
import type { Draft } from './outbox.ts'

export const MAIL_LANGUAGES = ['en', 'de'] as const
export type MailLanguage = typeof MAIL_LANGUAGES[number]

const TEXTS: Record<MailLanguage, (service: string, about: MailAbout) => MailTexts> = { en, de }

export type MailKind = keyof MailTexts

/** The language of a stored job; English for an unknown one. */
export function toMailLanguage (text: unknown): MailLanguage {
  return MAIL_LANGUAGES.find((language) => language === text) ?? 'en'
}

/**
 * Composes a mail. It contains no text from users but names of accounts, so that the service cannot be abused to send their texts.
 * @param service the name of the service
 * @param about the account and the address that the mail names, where it names them
 */
export function composeMail (
  kind: MailKind, { to, link, service, language, about = {} }: { to: string, link?: string, service: string, language: MailLanguage, about?: MailAbout }
): NonNullable<Draft> {
  const { subject, before, link: label, after }: MailText = TEXTS[language](service, about)[kind]
  const paragraphs = [...before, ...(link === undefined ? [] : [link]), ...after]
  return {
    to,
    subject,
    text: `${paragraphs.join('\n\n')}\n`,
    html: html`<!DOCTYPE html>
<html lang="${language}"><head><meta charset="utf-8"><title>${subject}</title></head><body>
${before.map((text) => html`<p>${text}</p>\n`)}${link !== undefined && html`<p><a href="${link}">${label ?? link}</a></p>\n`}${after.map((text) => html`<p>${text}</p>\n`)}</body></html>
`.text
  }
}
