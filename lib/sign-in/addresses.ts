import { isIPv6 } from 'node:net'

/**
 * What counts as one address when attempts are counted: of IPv6 the first 64 bits, all of which one connection is given
 * (RFC 6177, 2). An IPv4 address in IPv6 clothing is itself.
 */
export function groupAddress (ip: string): string {
  if (!isIPv6(ip)) return ip
  const bare = ip.replace(/%.*$/, '')
  // URL writes every address in its one shortest form, with an IPv4 tail as two groups.
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
