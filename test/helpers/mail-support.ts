import { readFileSync } from 'node:fs'
import { join } from 'node:path'

interface Limits { n?: string[], a?: string[], u?: string[] }

const { features } = JSON.parse(readFileSync(join(import.meta.dirname, '../fixtures/caniemail.json'), 'utf8')) as { features: Record<string, Limits> }

/** Features under another name than that of the property, element or attribute. */
const NAMES: Record<string, string> = {
  'css-at-media-max-width': 'css-at-media',
  'css-font-family': 'css-font',
  'html-h1': 'html-h1-h6',
  'html-td': 'html-table',
  'html-tr': 'html-table',
  'html-meta-color-scheme': 'html-meta-color-scheme',
  'html-border': 'css-border',
  'html-bgcolor': 'css-background-color'
}

/** What every program knows since HTML 2, and what does not change how a mail looks. caniemail has no rows for these. */
const KNOWN = new Set([
  'html-html', 'html-head', 'html-meta', 'html-title', 'html-br', 'html-a', 'html-href', 'html-src', 'html-alt', 'html-class', 'html-charset', 'html-name', 'html-content',
  'css-color', 'css-font-style', 'css-border-color'
])

/** Every property, value that matters, rule, selector, element, attribute and image of a mail, as caniemail names them. */
export function listFeatures (html: string, images: string[] = []): Set<string> {
  const found = new Set<string>(images.map((type) => `image-${type}`))
  const [, style = ''] = /<style>(.*?)<\/style>/s.exec(html) ?? []
  if (style !== '') found.add('html-style')
  const declared = [...html.matchAll(/ style="([^"]*)"/g)].map(([, text = '']) => text)
  for (const [, condition = ''] of style.matchAll(/@media \(([a-z-]+)/g)) found.add(`css-at-media-${condition}`)
  for (const [, selector = '', text = ''] of style.replaceAll(/@media [^{]*\{/g, '').matchAll(/([.:\w]+) \{([^}]*)\}/g)) {
    if (selector.startsWith('.')) found.add('css-selector-class')
    declared.push(text)
  }
  for (const text of declared) {
    if (text.includes('!important')) found.add('css-important')
    for (const [, property = '', value = ''] of text.matchAll(/([\w-]+): ([^;]*)/g)) {
      // Only Outlook reads these, which they are for.
      if (property.startsWith('mso-')) continue
      found.add(`css-${property}`)
      for (const [, unit = ''] of value.matchAll(/\d(px|%|em|rem|vw|vh)/g)) found.add(`css-unit-${unit === '%' ? 'percent' : unit}`)
    }
  }
  const body = html.replaceAll(/<style>.*?<\/style>|<!--.*?-->|<!DOCTYPE html>/gs, '')
  for (const [, element = '', attributes = ''] of body.matchAll(/<(\w+)([^>]*)>/g)) {
    found.add(`html-${element}`)
    for (const [, attribute = ''] of attributes.matchAll(/ ([a-z-]+)="/g)) if (attribute !== 'style') found.add(`html-${attribute}`)
    if (/name="(color-scheme)"/.test(attributes)) found.add('html-meta-color-scheme')
    if (/href="mailto:/.test(attributes)) found.add('html-mailto-links')
  }
  return found
}

/** The programs in which each of these features is missing or limited, without those that `accepted` names. A feature that is not known is a problem. */
export function findProblems (used: Iterable<string>, accepted: Record<string, { programs: string[], reason: string }>): string[] {
  return [...used].flatMap((feature) => {
    if (KNOWN.has(feature)) return []
    const limits = features[NAMES[feature] ?? feature]
    if (limits === undefined) return [`${feature}: caniemail does not have it`]
    const without = [...limits.n ?? [], ...limits.a ?? []].filter((program) => accepted[feature]?.programs.some((one) => program.startsWith(one)) !== true)
    return without.length === 0 ? [] : [`${feature}: ${without.join(', ')}`]
  })
}
