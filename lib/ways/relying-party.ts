import { isIP } from 'node:net'

/** The relying party of passkeys (WebAuthn, 5.1.2), and the origin of the pages that use them. */
export interface RelyingParty {
  /** A host: that of the issuer, or a domain above it. */
  id: string
  origin: string
}

/** The relying party, or why there is none: `text` is for the operator, and absent when the option says so. */
export interface FoundParty { party?: RelyingParty, text?: string }

const isLocalhost = (host: string): boolean => host === 'localhost' || host.endsWith('.localhost')

const isAddress = (host: string): boolean => isIP(host.replaceAll(/[[\]]/g, '')) !== 0

const EXAMPLE = 'http://localhost:3000'

/**
 * Finds the relying party of a service.
 * @throws Error that names the option `relyingParty` if it is neither the issuer's host nor a domain above it
 */
export function findRelyingParty (
  { passkeys = true, relyingParty, issuer }: { passkeys?: boolean | undefined, relyingParty?: string | undefined, issuer?: string | undefined }
): FoundParty {
  if (!passkeys) return {}
  if (issuer === undefined) return { text: `passkeys are off, because the service has an address and no name: set the issuer, for example to ${EXAMPLE}` }
  const { hostname, protocol, origin } = new URL(issuer)
  if (isAddress(hostname)) return { text: `passkeys are off, because the issuer's host ${hostname} is an address: use a name, such as localhost in ${EXAMPLE}` }
  const id = relyingParty ?? hostname
  // A domain of one label, such as com, belongs to nobody.
  if (id !== hostname && !(id.includes('.') && hostname.endsWith(`.${id}`))) {
    throw new Error(`option relyingParty: must be the issuer's host ${hostname}, or a domain above it`)
  }
  if (protocol !== 'https:' && !isLocalhost(hostname)) {
    return { text: `passkeys are off, because browsers allow them with https and on localhost only, and the issuer is ${origin}` }
  }
  return { party: { id, origin } }
}
