import { isIPv4, isIPv6 } from 'node:net'
import { groupNetwork } from '../throttling/networks.ts'

/** How much of a network address is stored: all of it, its network, or nothing. */
export type AddressMode = 'full' | 'net' | 'off'

/** The part of an address that is stored. A network is the first 24 bits of IPv4, or the first 48 of IPv6. */
export function keepAddress (address: string | undefined, mode: AddressMode): string | undefined {
  if (address === undefined || address === '' || mode === 'off') return undefined
  if (mode === 'full') return address.slice(0, 64)
  const network = groupNetwork(address)
  if (isIPv4(network)) return `${network.split('.').slice(0, 3).join('.')}.0/24`
  return isIPv6(address) ? network : undefined
}
