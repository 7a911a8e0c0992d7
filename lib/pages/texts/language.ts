import Negotiator from 'negotiator'
import type { Tree } from './template.ts'

/** The languages that the service brings. A browser that prefers none gets the first one. */
export const BUILT_IN: readonly Language[] = ['en', 'de']

/** A language tag (RFC 5646), such as `de` or `pt-BR`. */
export type Language = string

/** The number of language tags of `ui_locales` that are read. */
const TAGS = 10

/** The operator's texts of a language, as their file has them. Absent ones are those of the service. */
export interface OwnTexts {
  readonly pages?: Tree
  readonly mails?: Tree
}

/** The languages of the pages and mails. */
export interface Languages {
  readonly tags: readonly Language[]
  /** The operator's texts by language. */
  readonly own: Readonly<Record<Language, OwnTexts>>
  /**
   * Finds the first of our languages in the parameter `ui_locales`.
   * @param locales language tags, the preferred one first (OpenID Connect Core, 3.1.2.1)
   */
  find (locales: unknown): Language | undefined
  /**
   * The language that a request asks for. Undefined if it asks for none of ours.
   * @param locales the parameter `ui_locales`
   * @param accept the header Accept-Language (RFC 9110, 12.5.4)
   */
  findAsked (locales: unknown, accept: string | undefined): Language | undefined
  /** The same, with English as the last choice. */
  choose (locales: unknown, accept: string | undefined): Language
  /** A stored language, or English if it is none of ours any more. */
  check (language: unknown): Language
}

/** The longest of our tags that is the beginning of this one (RFC 4647, 3.4), or one of the same language: `pt-BR` for `pt`. */
function lookUp (tags: readonly Language[], tag: string): Language | undefined {
  const subtags = tag.toLowerCase().split('-')
  for (let length = subtags.length; length > 0; length--) {
    const range = subtags.slice(0, length).join('-')
    const found = tags.find((one) => one.toLowerCase() === range)
    if (found !== undefined) return found
  }
  return tags.find((one) => one.toLowerCase().startsWith(`${subtags[0]}-`))
}

/** @param own the operator's texts by language, which can add languages */
export function createLanguages (own: Readonly<Record<Language, OwnTexts>> = {}): Languages {
  const tags = [...new Set([...BUILT_IN, ...Object.keys(own)])]

  function find (locales: unknown): Language | undefined {
    if (typeof locales !== 'string') return undefined
    for (const tag of locales.split(' ', TAGS)) {
      const found = /^[a-z]{2,3}(?=$|-)/i.test(tag) ? lookUp(tags, tag) : undefined
      if (found !== undefined) return found
    }
  }

  function findAsked (locales: unknown, accept: string | undefined): Language | undefined {
    // Programs send `*` when their user has said nothing.
    const isAsked = accept !== undefined && accept.trim() !== '*'
    return find(locales) ?? (isAsked ? new Negotiator({ headers: { 'accept-language': accept } }).language(tags) : undefined)
  }

  return {
    tags,
    own,
    find,
    findAsked,
    choose: (locales, accept) => findAsked(locales, accept) ?? 'en',
    check: (language) => tags.find((tag) => tag === language) ?? 'en'
  }
}

/** The languages without any of the operator's texts. */
export const OUR_LANGUAGES: Languages = createLanguages()
