import { isIPv6 } from 'node:net'

/** The eight groups of an IPv6 address. */
function splitGroups (ip: string): string[] {
  const bare = ip.replace(/%.*$/, '')
  // URL normalizes the address to its shortest form, and an IPv4 tail to two groups.
  const short = new URL(`http://[${bare}]`).hostname.slice(1, -1)
  const [left = '', right] = short.split('::')
  const head = left === '' ? [] : left.split(':')
  const tail = right === undefined || right === '' ? [] : right.split(':')
  return right === undefined ? head : [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail]
}

/** Truncates an IPv6 address to this number of groups. An IPv4-mapped address becomes the IPv4 address. */
function cutAddress (ip: string, count: number): string {
  if (!isIPv6(ip)) return ip
  const groups = splitGroups(ip)
  if (groups.slice(0, 5).every((group) => group === '0') && groups[5] === 'ffff') {
    return groups.slice(6).map((group) => Number.parseInt(group, 16)).flatMap((value) => [value >> 8, value & 255]).join('.')
  }
  return `${groups.slice(0, count).join(':')}::/${16 * count}`
}

/**
 * The key of an address in rate limits. IPv6 addresses count by their first 64 bits, because a connection is assigned all addresses
 * with the same prefix (RFC 6177, 2). An IPv4-mapped IPv6 address counts as the IPv4 address.
 */
export const groupAddress = (ip: string): string => cutAddress(ip, 4)

/** The largest network that a provider assigns to one customer: the first 48 bits of IPv6. An IPv4 address is its own network. */
export const groupNetwork = (ip: string): string => cutAddress(ip, 3)

/** Whether an address belongs to a /48 network, which has its own limits. */
export const isInNetwork = (ip: string): boolean => groupNetwork(ip) !== groupAddress(ip)

/** The turn of an address, wherever callers take turns: all addresses of a network share the turns of one caller. */
export const toNetworkTurn = (ip: string) => ({ key: `address ${groupAddress(ip)}`, group: `network ${groupNetwork(ip)}` })

/** The limits of a /48, as a multiple of the limits of an address. A /48 has 65,536 networks that each count as one address. */
export const NETWORK = 10
