import type { Headers } from '../service-client/relay.ts'

type Incoming = Readonly<Record<string, string | string[] | undefined>>

/** Fields that apply to one connection. An intermediary does not forward them (RFC 9110, 7.6.1). */
const HOP_BY_HOP = new Set([
  'connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization',
  'proxy-authentication-info', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings'
])

/** Returns the end-to-end fields: all except hop-by-hop fields, the fields that Connection lists, and those in `drop`. */
export function endToEnd (headers: Incoming, drop: ReadonlySet<string>): Headers {
  const listed = new Set(
    [headers.connection ?? []].flat().join(',').split(',').map((name) => name.trim().toLowerCase())
  )
  const kept: Headers = Object.create(null)
  for (const [name, value] of Object.entries(headers)) {
    // Node includes HTTP/2's pseudo-fields (RFC 9113, 8.3).
    const dropped = name.startsWith(':') || HOP_BY_HOP.has(name) || listed.has(name) || drop.has(name)
    if (value !== undefined && !dropped) kept[name] = value
  }
  return kept
}

/** The caller, as the upstream sees it. */
interface Peer {
  /** The remote address of the socket; undefined for a Unix socket. */
  address: string | undefined
  /** Host and scheme of the request, under the host app's trustProxy setting. */
  host: string
  protocol: string
}

/** A pair of a well-formed Forwarded field (RFC 7239, 4). Unquoted ports and addresses, which many proxies send, are allowed too. */
const PAIR = '[\\w!#$%&\'*+.^`|~-]+=(?:[^\\s",;]+|"(?:[^"\\\\]|\\\\.)*")'
const FORWARDED = new RegExp(`^${PAIR}(?:[ \\t]*[,;][ \\t]*${PAIR})*$`)

const quote = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`
const append = (list: string, item: string) => (list === '' ? item : `${list}, ${item}`)
const join = (value: string | string[] | undefined) => [value ?? []].flat().join(', ').trim()

/**
 * Creates Forwarded (RFC 7239), its X-Forwarded predecessors and Via (RFC 9110, 7.6.3). Our entry is appended to lists. The
 * X-Forwarded fields for host and scheme have a single value, which is always set and never copied from an untrusted caller. A
 * malformed Forwarded field is dropped, because an open quote in it would swallow our entry.
 */
export function forwardingFields (headers: Incoming, peer: Peer): Headers {
  // An IPv4 caller on a dual-stack socket (RFC 4291, 2.5.5.2).
  const address = peer.address?.replace(/^::ffff:(?=[\d.]+$)/, '')
  const node = address === undefined ? 'unknown' : address.includes(':') ? quote(`[${address}]`) : address
  const element = `for=${node};host=${quote(peer.host)};proto=${peer.protocol}`
  const before = join(headers.forwarded)
  const chain = join(headers['x-forwarded-for'])
  const fields: Headers = {
    forwarded: append(FORWARDED.test(before) ? before : '', element),
    'x-forwarded-proto': peer.protocol,
    via: append(join(headers.via), '1.1 fastify-identity')
  }
  if (peer.host !== '') fields['x-forwarded-host'] = peer.host
  if (address !== undefined) fields['x-forwarded-for'] = append(chain, address)
  else if (chain !== '') fields['x-forwarded-for'] = chain
  return fields
}

/** Request fields that undici writes itself, that are not forwarded, or that `forwardingFields` replaces. */
const REQUEST_DROP: ReadonlySet<string> = new Set([
  'host', 'content-length', 'expect',
  'forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'via'
])

/** Response fields that the bridge writes itself. */
const RESPONSE_DROP: ReadonlySet<string> = new Set(['x-content-type-options'])

/** The fields to drop in requests and responses. Cookies of the host app are not for the upstream, nor the other way round. */
export function chooseDrops (cookies: boolean): { request: ReadonlySet<string>, response: ReadonlySet<string> } {
  if (cookies) return { request: REQUEST_DROP, response: RESPONSE_DROP }
  return { request: new Set([...REQUEST_DROP, 'cookie']), response: new Set([...RESPONSE_DROP, 'set-cookie']) }
}
