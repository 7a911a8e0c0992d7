import { BlockList, isIP } from 'node:net'

/** IPv4 networks outside the public internet (IANA's special-purpose registry, RFC 6890), and 6to4 relays. */
const SPECIAL_V4 = [
  '0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24',
  '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'
]

/** Public IPv6 addresses: global unicast only. This excludes loopback, unique local, link-local, multicast, mapped and NAT64. */
const GLOBAL_V6 = ['2000::/3']

/** Special-purpose networks within GLOBAL_V6: protocol assignments including Teredo, documentation, 6to4. */
const SPECIAL_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

function addNetwork (list: BlockList, network: string): void {
  const [address = '', bits = ''] = network.split('/')
  list.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

function listNetworks (networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) addNetwork(list, network)
  return list
}

const special = listNetworks([...SPECIAL_V4, ...SPECIAL_V6])
const globalV6 = listNetworks(GLOBAL_V6)

function isListed (list: BlockList, address: string): boolean {
  // getaddrinfo may append a zone to a link-local address.
  return list.check(address.replace(/%.*/, ''), isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

/** Whether the address belongs to the public internet. */
export function isPublicAddress (address: string): boolean {
  if (isIP(address) === 6 && !isListed(globalV6, address)) return false
  return isIP(address) !== 0 && !isListed(special, address)
}

/** Hosts on this device. They may be called outside production. */
export const LOOPBACK_HOSTS = ['localhost', '127.0.0.0/8', '::1']

/** Hosts that may be called even if they are not public, and without TLS. */
interface AllowedHosts {
  hasName (hostname: string): boolean
  hasAddress (address: string): boolean
}

/**
 * Parses an address, or a network such as 10.0.0.0/8. Null: it is neither.
 */
function readNetwork (entry: string): { address: string, bits: number, family: 'ipv4' | 'ipv6' } | null {
  const [address = '', bits, ...rest] = entry.replace(/^\[(.*)\]$/, '$1').split('/')
  const version = isIP(address)
  const most = version === 6 ? 128 : 32
  const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : -1
  return version === 0 || rest.length > 0 || prefix < 0 || prefix > most ? null : { address, bits: prefix, family: version === 6 ? 'ipv6' : 'ipv4' }
}

/**
 * Parses addresses, and networks such as 10.0.0.0/8.
 * @returns whether an address is one of them
 * @throws Error that names the entry
 */
export function readNetworks (entries: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const entry of entries) {
    const network = readNetwork(entry)
    if (network === null) throw new Error(`${entry}: must be an address or a network such as 10.0.0.0/8`)
    list.addSubnet(network.address, network.bits, network.family)
  }
  return (address) => isIP(address) !== 0 && isListed(list, address)
}

/**
 * Parses host names, addresses, and networks such as 10.0.0.0/8.
 * @throws Error that names the entry
 */
export function readAllowedHosts (entries: readonly string[]): AllowedHosts {
  const names = new Set<string>()
  const addresses = new BlockList()
  for (const entry of entries) {
    const network = readNetwork(entry)
    if (network !== null) addresses.addSubnet(network.address, network.bits, network.family)
    else if (/^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i.test(entry)) names.add(entry.toLowerCase())
    else throw new Error(`${entry}: must be a host, an address or a network such as 10.0.0.0/8`)
  }
  return { hasName: (hostname) => names.has(hostname), hasAddress: (address) => isListed(addresses, address) }
}
