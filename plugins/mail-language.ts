import type { FastifyRequest } from 'fastify'
import Negotiator from 'negotiator'
import { MAIL_LANGUAGES, type MailLanguage, toMailLanguage } from '../lib/mail/compose.ts'

/** The language of the mail that a request leads to, by Accept-Language. */
export function chooseMailLanguage (request: FastifyRequest): MailLanguage {
  return toMailLanguage(new Negotiator(request.raw).language([...MAIL_LANGUAGES]))
}
