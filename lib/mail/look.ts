import { type Image, measureImage, readImage } from '../pages/image.ts'
import { type ButtonColours, readAccent } from '../pages/look.ts'
import { type OperatorLinkOptions, type OperatorLinks, createOperatorLinks } from '../pages/operator-links.ts'

/** An image that the HTML of a mail refers to by `cid:`, so that no mail program loads anything. */
export interface Attachment {
  cid: string
  filename: string
  contentType: string
  content: Buffer
}

/** The operator's design of the mails. */
export interface MailLook {
  /** The logo, with its size in the mail. `isWide`: it is a word mark, beside which the name would stand twice. */
  logo?: { attachment: Attachment, width: number, height: number, isWide: boolean }
  colours: Record<'light' | 'dark', ButtonColours>
  links: OperatorLinks
}

interface MailLookOptions extends OperatorLinkOptions {
  /** The logo of the pages. */
  logo?: string | undefined
  accent?: string | undefined
}

/** The pixels that a logo may take. It is shown at half its size or less, for screens with twice the density, unless it is small. */
const MOST = { width: 200, height: 48 }

/** The colours of buttons where the operator gives none: those of the pages. */
const BUTTONS = '#24508f #a9c5f2'

/** Types that mail programs show. Most show no SVG and no WebP. */
const SHOWN: readonly string[] = ['image/png', 'image/jpeg', 'image/gif']

function placeLogo (image: Image): NonNullable<MailLook['logo']> | undefined {
  const size = measureImage(image)
  if (size === undefined) return
  const scale = Math.min(1, MOST.width / size.width, MOST.height / size.height)
  const [width, height] = [size.width, size.height].map((pixels) => Math.max(1, Math.round(pixels * scale))) as [number, number]
  const extension = image.type.slice('image/'.length).replace('jpeg', 'jpg')
  return {
    attachment: { cid: 'logo', filename: `logo.${extension}`, contentType: image.type, content: image.content },
    width,
    height,
    isWide: width >= 2 * height
  }
}

/** @throws Error that names the option */
function readLogo (logo: string | undefined, own: string | undefined): MailLook['logo'] {
  if (own !== undefined) {
    const image = readImage('mail.logo', own)
    const placed = SHOWN.includes(image.type) ? placeLogo(image) : undefined
    if (placed === undefined) throw new Error('option mail.logo: is not a PNG, JPEG or GIF image')
    return placed
  }
  const image = logo === undefined ? undefined : readImage('oidc.logo', logo)
  return image !== undefined && SHOWN.includes(image.type) ? placeLogo(image) : undefined
}

/**
 * Checks and prepares the design of the mails.
 * @param own the logo for mails; absent: that of the pages, if mail programs show its type
 * @throws Error that names the option
 */
export function createMailLook ({ logo, accent = BUTTONS, ...links }: MailLookOptions = {}, own?: string): MailLook {
  const placed = readLogo(logo, own)
  return { colours: readAccent(accent), links: createOperatorLinks(links), ...(placed && { logo: placed }) }
}
