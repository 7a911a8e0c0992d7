import { isIPv4, isIPv6 } from 'node:net'

/** How much of a network address is stored: all of it, its network, or nothing. */
export type AddressMode = 'full' | 'net' | 'off'

/** Groups of an IPv6 address that name a network: a provider gives a customer /48 to /64. */
const GROUPS = 3

/** The part of an address that is stored. A network is the first 24 bits of IPv4, or the first 48 of IPv6. */
export function keepAddress (address: string | undefined, mode: AddressMode): string | undefined {
  if (address === undefined || address === '' || mode === 'off') return undefined
  if (mode === 'full') return address.slice(0, 64)
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address
  if (isIPv4(mapped)) return `${mapped.split('.').slice(0, 3).join('.')}.0/24`
  return isIPv6(address) ? `${expand(address).slice(0, GROUPS).join(':')}::/48` : undefined
}

/** The eight groups of an IPv6 address, without its zone. */
function expand (address: string): string[] {
  const [head = '', tail] = address.replace(/%.*$/, '').split('::')
  const [left, right] = [head, tail ?? ''].map((part) => part.split(':').filter(Boolean)) as [string[], string[]]
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length)
  return [...left, ...Array<string>(zeros).fill('0'), ...right]
}
