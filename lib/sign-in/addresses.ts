import { isIPv6 } from 'node:net'

/** The eight groups of an IPv6 address. */
function splitGroups (ip: string): string[] {
  const bare = ip.replace(/%.*$/, '')
  // URL normalises the address to its shortest form, an IPv4 tail to two groups.
  const short = new URL(`http://[${bare}]`).hostname.slice(1, -1)
  const [left = '', right] = short.split('::')
  const head = left === '' ? [] : left.split(':')
  const tail = right === undefined || right === '' ? [] : right.split(':')
  return right === undefined ? head : [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail]
}

/** Cuts an IPv6 address after this many groups. An IPv4-mapped one is the IPv4 address. */
function cutAddress (ip: string, count: number): string {
  if (!isIPv6(ip)) return ip
  const groups = splitGroups(ip)
  if (groups.slice(0, 5).every((group) => group === '0') && groups[5] === 'ffff') {
    return groups.slice(6).map((group) => Number.parseInt(group, 16)).flatMap((value) => [value >> 8, value & 255]).join('.')
  }
  return `${groups.slice(0, count).join(':')}::/${16 * count}`
}

/**
 * The key under which a rate limit counts an address. IPv6 counts by its first 64 bits, because one connection is assigned
 * all addresses below them (RFC 6177, 2). An IPv4-mapped IPv6 address counts as the IPv4 address.
 */
export const groupAddress = (ip: string): string => cutAddress(ip, 4)

/** The network that one customer of a provider may be assigned as a whole: the first 48 bits of IPv6. IPv4 addresses are by themselves. */
export const groupNetwork = (ip: string): string => cutAddress(ip, 3)

/** Whether an address belongs to such a network, which has limits of its own. */
export const isInNetwork = (ip: string): boolean => groupNetwork(ip) !== groupAddress(ip)

/** The limits of such a network, as a multiple of those of an address: one customer may hold 65,536 of these. */
export const NETWORK = 10
