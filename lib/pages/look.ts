import { hash } from 'node:crypto'
import { type Colour, computeContrast, mixColours } from './colours.ts'
import { readImage } from './image.ts'
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

/** The contrast of a button and its surroundings (WCAG 2.2, 1.4.11). Text on it always has 4.5 (1.4.3), in either white or black. */
const LEAST_CONTRAST = 3

/** The colours of a button. */
export interface ButtonColours { accent: Colour, hover: Colour, text: Colour }

/** The colours of buttons and focus rings on one background. */
function toColours (accent: Colour, scheme: keyof typeof SURFACES): ButtonColours {
  for (const surface of SURFACES[scheme]) {
    const contrast = computeContrast(accent, surface)
    if (contrast < LEAST_CONTRAST) {
      throw new Error(`option oidc.accent: ${accent} has a contrast of ${contrast.toFixed(2)} to the ${scheme} background ${surface}, and needs ${LEAST_CONTRAST}; give one colour for each background, as in "#24508f #a9c5f2"`)
    }
  }
  const text = computeContrast(accent, '#ffffff') >= 4.5 ? '#ffffff' : '#000000'
  return { accent, text, hover: mixColours(accent, text === '#ffffff' ? '#000000' : '#ffffff', 0.15) }
}

/**
 * The colours of buttons on a light and on a dark background.
 * @throws Error for a colour without enough contrast
 */
export function readAccent (accent: string): Record<keyof typeof SURFACES, ButtonColours> {
  const [light = '', dark = light] = accent.toLowerCase().split(' ')
  return { light: toColours(light, 'light'), dark: toColours(dark, 'dark') }
}

function addAccent (accent: string): string {
  const { light, dark } = readAccent(accent)
  const write = ({ accent, hover, text }: ButtonColours) => `:root { --button: ${accent}; --button-hover: ${hover}; --button-text: ${text}; --focus: ${accent}; }`
  return `${STYLE}${write(light)}\n@media (prefers-color-scheme: dark) { ${write(dark)} }\n`
}

/** Converts the logo to a data URL. */
function inlineLogo (logo: string): string {
  const { type, content } = readImage('oidc.logo', logo)
  return `data:${type};base64,${content.toString('base64')}`
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
