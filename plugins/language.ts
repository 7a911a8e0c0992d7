import type { FastifyInstance, FastifyRequest } from 'fastify'
import { LANGUAGE_COOKIE, joinLocales } from '../lib/pages/language-cookie.ts'
import { readCookie } from './cookies.ts'

/** The requested languages, the preferred one first: `ui_locales` of this request, then the language of an earlier one. */
export function readLocales (request: FastifyRequest): string {
  const { ui_locales } = request.query as { ui_locales?: unknown } | undefined ?? {}
  return joinLocales(ui_locales, readCookie(request, LANGUAGE_COOKIE))
}

/** Stores the language that a link asked for in a cookie, so that the links, forms and redirects of this scope need not repeat it. */
export function keepLanguage (app: FastifyInstance, getIssuer: () => URL): void {
  app.addHook('onRequest', async (request, reply) => {
    const { ui_locales } = request.query as { ui_locales?: unknown }
    if (typeof ui_locales !== 'string') return
    const { findLocale } = await import('../lib/pages/texts/language.ts')
    const language = findLocale(ui_locales)
    if (language === undefined || language === readCookie(request, LANGUAGE_COOKIE)) return
    reply.header('set-cookie', `${LANGUAGE_COOKIE}=${language}; Path=/; HttpOnly; SameSite=Lax${getIssuer().protocol === 'https:' ? '; Secure' : ''}`)
  })
}
