import type { FastifyRequest } from 'fastify'
import { type MailLanguage, toMailLanguage } from '../lib/mail/compose.ts'
import { chooseLanguage } from '../lib/pages/texts/language.ts'
import { readLocales } from './language.ts'

/** The language of the mail that a request causes: the same as that of the pages. */
export function chooseMailLanguage (request: FastifyRequest, locales?: string): MailLanguage {
  return toMailLanguage(chooseLanguage(readLocales(request, locales), request.headers['accept-language']))
}
