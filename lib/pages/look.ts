import { hash } from 'node:crypto'
import { type Colour, computeContrast, mixColours } from './colours.ts'
import { chooseIcon } from './icon.ts'
import { readImage } from './image.ts'
import { type OperatorLinkOptions, type OperatorLinks, createOperatorLinks } from './operator-links.ts'
import { STYLE, SURFACES } from './style.ts'
import { type Languages, OUR_LANGUAGES } from './texts/language.ts'

/** The operator's design of the pages. */
export interface Look {
  /** The service's name. Absent: none is shown. */
  name?: string | undefined
  /** The logo as a data URL, and the one on a dark background, if it is another. */
  logo?: string | undefined
  logoDark?: string | undefined
  /** The icon in the browser's tab as a data URL. */
  icon: string
  /** The style sheet, and its source in a content security policy (CSP 3, 2.3.1). */
  style: string
  styleSource: string
  /** The operator's help address, terms and privacy notice. */
  links: OperatorLinks
  /** The languages of the pages. */
  languages: Languages
  /** The path of the account pages, if they are on. */
  getHome?: (() => string) | undefined
  /** The URL of the script of passkeys, if they are on. */
  getScript?: (() => string) | undefined
}

interface LookOptions extends Pick<Look, 'name' | 'getHome'>, OperatorLinkOptions {
  /** The path of an image, or a data URL with base64. */
  logo?: string | undefined
  /** The same, for a dark background. It needs `logo`. */
  logoDark?: string | undefined
  /** One colour, or two with a space between them: for a light and for a dark background. */
  accent?: string | undefined
  /** Absent: the languages that the service brings. */
  languages?: Languages | undefined
}

/** The contrast of a button and its surroundings (WCAG 2.2, 1.4.11). Text on it always has 4.5 (1.4.3), in either white or black. */
const LEAST_CONTRAST = 3
/** The contrast of text (WCAG 2.2, 1.4.3). */
const TEXT_CONTRAST = 4.5

/** The accent of the built-in style. */
const BUILT_IN = '#24508f'

/** The colour of links: the accent, changed as far as a text needs. */
function toLink (accent: Colour, scheme: keyof typeof SURFACES): Colour {
  const target = scheme === 'light' ? '#000000' : '#ffffff'
  for (let share = 0; share < 1; share += 0.05) {
    const link = mixColours(accent, target, share)
    if (SURFACES[scheme].every((surface) => computeContrast(link, surface) >= TEXT_CONTRAST)) return link
  }
  return target
}

/** The colours of a button, and of links beside it. */
export interface ButtonColours { accent: Colour, hover: Colour, text: Colour, link: Colour }

/**
 * The colours of buttons and links on one background. The ring around the focus keeps its own: in a red accent it would look like
 * the mark of an error.
 */
function toColours (accent: Colour, scheme: keyof typeof SURFACES): ButtonColours {
  for (const surface of SURFACES[scheme]) {
    const contrast = computeContrast(accent, surface)
    if (contrast < LEAST_CONTRAST) {
      const problem = `has a contrast of ${contrast.toFixed(2)} to the ${scheme} background ${surface}, and needs ${LEAST_CONTRAST}`
      throw new Error(`option oidc.accent: ${accent} ${problem}; give one colour for each background, as in "#24508f #a9c5f2"`)
    }
  }
  const text = computeContrast(accent, '#ffffff') >= 4.5 ? '#ffffff' : '#000000'
  return { accent, text, hover: mixColours(accent, text === '#ffffff' ? '#000000' : '#ffffff', 0.15), link: toLink(accent, scheme) }
}

/**
 * The colours of buttons on a light and on a dark background.
 * @throws Error for a colour without enough contrast
 */
export function readAccent (accent: string): Record<keyof typeof SURFACES, ButtonColours> {
  const [light = '', dark = light] = accent.toLowerCase().split(' ')
  return { light: toColours(light, 'light'), dark: toColours(dark, 'dark') }
}

/** The style sheet as pages have it, without the spaces that only people read. */
const shorten = (style: string): string => style.trim().replaceAll(/\s*([{};,])\s*/g, '$1').replaceAll(': ', ':')

function addAccent (accent: string): string {
  const { light, dark } = readAccent(accent)
  const write = ({ accent, hover, text, link }: ButtonColours) =>
    `:root { --button: ${accent}; --button-hover: ${hover}; --button-text: ${text}; --link: ${link}; }`
  return `${STYLE}${write(light)}\n@media (prefers-color-scheme: dark) { ${write(dark)} }\n`
}

/** The same design with more style. */
export function extendLook (look: Look, more: string): Look {
  const style = look.style + shorten(more)
  return { ...look, style, styleSource: `'sha256-${hash('sha256', style, 'base64')}'` }
}

/** Converts the logo to a data URL. */
function inlineLogo (name: 'oidc.logo' | 'oidc.logoDark', logo: string): string {
  const { type, content } = readImage(name, logo)
  return `data:${type};base64,${content.toString('base64')}`
}

/**
 * Checks and prepares the operator's design.
 * @throws Error that names the option, for an invalid logo, or a colour without enough contrast
 */
export function createLook ({ name, logo, logoDark, accent, getHome, languages = OUR_LANGUAGES, ...links }: LookOptions = {}): Look {
  const style = shorten(accent === undefined ? STYLE : addAccent(accent))
  const inlined = logo === undefined ? undefined : inlineLogo('oidc.logo', logo)
  if (logoDark !== undefined && logo === undefined) throw new Error('option oidc.logoDark: needs a logo for light backgrounds too')
  return {
    style,
    icon: chooseIcon(inlined, accent?.slice(0, 7) ?? BUILT_IN),
    styleSource: `'sha256-${hash('sha256', style, 'base64')}'`,
    links: createOperatorLinks(links),
    languages,
    name,
    logo: inlined,
    logoDark: logoDark === undefined ? undefined : inlineLogo('oidc.logoDark', logoDark),
    getHome
  }
}
