import { isIPv6 } from 'node:net'

/**
 * The key under which a rate limit counts an address. IPv6 counts by its first 64 bits, because one connection is assigned
 * all addresses below them (RFC 6177, 2). An IPv4-mapped IPv6 address counts as the IPv4 address.
 */
export function groupAddress (ip: string): string {
  if (!isIPv6(ip)) return ip
  const bare = ip.replace(/%.*$/, '')
  // URL normalises the address to its shortest form, an IPv4 tail to two groups.
  const short = new URL(`http://[${bare}]`).hostname.slice(1, -1)
  const [left = '', right] = short.split('::')
  const head = left === '' ? [] : left.split(':')
  const tail = right === undefined || right === '' ? [] : right.split(':')
  const groups = right === undefined ? head : [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail]
  if (groups.slice(0, 5).every((group) => group === '0') && groups[5] === 'ffff') {
    return groups.slice(6).map((group) => Number.parseInt(group, 16)).flatMap((value) => [value >> 8, value & 255]).join('.')
  }
  return `${groups.slice(0, 4).join(':')}::/64`
}
