import type { OidcOptions } from '../../schemas/oidc.ts'
import { defined } from '../defined.ts'

/** The operator's own pages, which the pages of the service and the mails link to. Absent: not configured. */
export interface OperatorLinks {
  /** Where people get help: the text to show, and its URL (`mailto:` for an email address). */
  help?: { text: string, href: string }
  terms?: string
  privacy?: string
}

function checkUrl (option: string, url: string): string {
  if (!URL.canParse(url)) throw new Error(`option oidc.${option}: must be a valid URL`)
  return url
}

export type OperatorLinkOptions = Partial<Pick<OidcOptions, 'helpAddress' | 'termsUrl' | 'privacyUrl'>>

/** @throws Error that names the option, for a URL that is not valid */
export function createOperatorLinks ({ helpAddress, termsUrl, privacyUrl }: OperatorLinkOptions): OperatorLinks {
  const toHref = (help: string) => /^https?:\/\//.test(help) ? checkUrl('helpAddress', help) : `mailto:${help}`
  return defined({
    help: helpAddress === undefined ? undefined : { text: helpAddress, href: toHref(helpAddress) },
    terms: termsUrl === undefined ? undefined : checkUrl('termsUrl', termsUrl),
    privacy: privacyUrl === undefined ? undefined : checkUrl('privacyUrl', privacyUrl)
  })
}
