import { hash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { type Colour, computeContrast, mixColours } from './colours.ts'
import { type OperatorLinkOptions, type OperatorLinks, createOperatorLinks } from './operator-links.ts'
import { STYLE, SURFACES } from './style.ts'

/** The operator's design of the pages. */
export interface Look {
  /** The service's name. Absent: none is shown. */
  name?: string | undefined
  /** The logo as a data URL. */
  logo?: string | undefined
  /** The style sheet, and its source in a content security policy (CSP 3, 2.3.1). */
  style: string
  styleSource: string
  /** The operator's help address, terms and privacy notice. */
  links: OperatorLinks
  /** The path of the account pages, if they are on. */
  getHome?: (() => string) | undefined
}

export interface LookOptions extends Pick<Look, 'name' | 'getHome'>, OperatorLinkOptions {
  /** The path of an image, or a data URL with base64. */
  logo?: string | undefined
  /** One colour, or two with a space between them: for a light and for a dark background. */
  accent?: string | undefined
}

/** The maximum size of a logo in bytes. It is part of every page. */
const LOGO_LIMIT = 64 * 1024

/** The contrast of a button and its surroundings (WCAG 2.2, 1.4.11). Text on it always has 4.5 (1.4.3), in either white or black. */
const LEAST_CONTRAST = 3

/** The first bytes of each accepted type. Browsers run no scripts and load nothing for an SVG that is shown as an image. */
const IMAGE_TYPES: [type: string, start: RegExp][] = [
  ['image/png', /^\x89PNG\r\n/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF[^]{4}WEBP/],
  ['image/svg+xml', /^(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?(<!--[^]*?-->\s*)*(<!DOCTYPE svg[^>]*>\s*)?<svg[\s>]/]
]

function readImage (logo: string): Buffer {
  if (!logo.startsWith('data:')) {
    if (statSync(logo).size > LOGO_LIMIT) throw new Error(`is larger than ${LOGO_LIMIT} bytes`)
    return readFileSync(logo)
  }
  const [, text] = /^data:[\w/+.-]+;base64,([\w+/]+=*)$/.exec(logo) ?? []
  if (text === undefined) throw new Error('is not a data URL with base64')
  return Buffer.from(text, 'base64')
}

/** Converts the logo to a data URL. The content determines the type. */
function inlineLogo (logo: string): string {
  try {
    const image = readImage(logo)
    if (image.length > LOGO_LIMIT) throw new Error(`is larger than ${LOGO_LIMIT} bytes`)
    const start = image.toString('latin1', 0, 4096)
    const type = IMAGE_TYPES.find(([, pattern]) => pattern.test(start))?.[0]
    if (type === undefined) throw new Error('is not a PNG, JPEG, GIF, WebP or SVG image')
    return `data:${type};base64,${image.toString('base64')}`
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    throw new Error(`option oidc.logo: ${code === undefined ? message : `cannot be read (${code})`}`, { cause })
  }
}

/** The colours of buttons and focus rings on one background. */
function toScheme (accent: Colour, scheme: keyof typeof SURFACES): string {
  for (const surface of SURFACES[scheme]) {
    const contrast = computeContrast(accent, surface)
    if (contrast < LEAST_CONTRAST) {
      throw new Error(`option oidc.accent: ${accent} has a contrast of ${contrast.toFixed(2)} to the ${scheme} background ${surface}, and needs ${LEAST_CONTRAST}; give one colour for each background, as in "#24508f #a9c5f2"`)
    }
  }
  const text = computeContrast(accent, '#ffffff') >= 4.5 ? '#ffffff' : '#000000'
  const hover = mixColours(accent, text === '#ffffff' ? '#000000' : '#ffffff', 0.15)
  return `:root { --button: ${accent}; --button-hover: ${hover}; --button-text: ${text}; --focus: ${accent}; }`
}

function addAccent (accent: string): string {
  const [light = '', dark = light] = accent.toLowerCase().split(' ')
  return `${STYLE}${toScheme(light, 'light')}\n@media (prefers-color-scheme: dark) { ${toScheme(dark, 'dark')} }\n`
}

/**
 * Checks and prepares the operator's design.
 * @throws Error that names the option, for an invalid logo, or a colour without enough contrast
 */
export function createLook ({ name, logo, accent, getHome, ...links }: LookOptions = {}): Look {
  const style = accent === undefined ? STYLE : addAccent(accent)
  return {
    style,
    styleSource: `'sha256-${hash('sha256', style, 'base64')}'`,
    links: createOperatorLinks(links),
    ...(name !== undefined && { name }),
    ...(logo !== undefined && { logo: inlineLogo(logo) }),
    ...(getHome !== undefined && { getHome })
  }
}
