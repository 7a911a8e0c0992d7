import type { FastifyRequest } from 'fastify'
import type { Language } from '../lib/pages/texts/language.ts'
import { readChoice, readLocales } from './language.ts'

/** The language of the mail that a request causes: the same as that of the pages. */
export function chooseMailLanguage (request: FastifyRequest, locales?: string): Language {
  return request.server.identity.languages.choose(readLocales(request, locales), request.headers['accept-language'])
}

/** The language that a request asks for: undefined where it asks for none of ours, as most programs do. */
export function findAskedLanguage (request: FastifyRequest, locales?: string): Language | undefined {
  return request.server.identity.languages.findAsked(readLocales(request, locales), request.headers['accept-language'])
}

/**
 * Keeps the language of the pages with the account of the person who sees them, for later mails. A language that they chose on a page, now
 * or earlier in this browser, stays; the one of the browser or an app gives way to the next.
 */
export async function rememberLanguage (request: FastifyRequest, user_id: string, locales?: string): Promise<void> {
  const { accounts, languages } = request.server.identity
  const chosen = languages.find(readChoice(request))
  const language = chosen ?? findAskedLanguage(request, locales)
  if (language !== undefined) await accounts.rememberLanguage(user_id, language, { chosen: chosen !== undefined })
}
