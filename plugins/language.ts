import type { FastifyInstance, FastifyRequest } from 'fastify'
import { CHOICE, CHOICE_COOKIE, LANGUAGE_COOKIE, joinLocales } from '../lib/pages/language-cookie.ts'
import type { Language } from '../lib/pages/texts/language.ts'
import { readCookie } from './cookies.ts'
import { readParameter } from './parameters.ts'

/** Seconds for which a browser keeps a person's choice: a year. */
const CHOICE_LIFE = 365 * 24 * 60 * 60

/** `ui_locales` of this request, then the language of an earlier one. */
function readAsked (request: FastifyRequest): string {
  return joinLocales(readParameter(request, 'ui_locales'), readCookie(request, LANGUAGE_COOKIE))
}

/** What the person has chosen with this request, then with an earlier one. */
export function readChoice (request: FastifyRequest): string {
  return joinLocales(readParameter(request, CHOICE), readCookie(request, CHOICE_COOKIE))
}

/** Whether the person or an app asks for a language of the pages with this request. */
export function isChoosing (request: FastifyRequest): boolean {
  return [CHOICE, 'ui_locales'].some((name) => typeof readParameter(request, name) === 'string')
}

/**
 * The languages of the answer, the preferred one first: what the person has chosen on a page, then what the app asks for.
 * @param locales what the app asks for. Absent: `ui_locales` of this request or of an earlier one
 */
export function readLocales (request: FastifyRequest, locales = readAsked(request)): string {
  return joinLocales(readChoice(request), locales)
}

const toCookie = (name: string, language: string, isSecure: boolean, life = '') =>
  `${name}=${language}; Path=/${life}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`

const findOne = (request: FastifyRequest, locales: unknown): Language | undefined => request.server.identity.languages.find(locales)

/** Stores the language that a link asked for in a cookie, so that the links, forms and redirects of this scope need not repeat it. */
export function keepLanguage (app: FastifyInstance, getIssuer: () => URL): void {
  app.addHook('onRequest', async (request, reply) => {
    const language = findOne(request, readParameter(request, 'ui_locales'))
    if (language === undefined || language === readCookie(request, LANGUAGE_COOKIE)) return
    reply.header('set-cookie', toCookie(LANGUAGE_COOKIE, language, getIssuer().protocol === 'https:'))
  })
}

/** Stores the language that a person has chosen on a page of this scope in a cookie, for every page of the service. */
export function keepChoice (app: FastifyInstance, isSecure: () => boolean): void {
  app.addHook('onRequest', async (request, reply) => {
    const language = findOne(request, readParameter(request, CHOICE))
    if (language === undefined || language === readCookie(request, CHOICE_COOKIE)) return
    reply.header('set-cookie', toCookie(CHOICE_COOKIE, language, isSecure(), `; Max-Age=${CHOICE_LIFE}`))
  })
}
