import { BlockList, isIP } from 'node:net'

/** What the schema of an environment variable is written in (schemas/config.ts). */
export interface Term { anyOf?: Term[], const?: unknown, type?: string, minimum?: number, maximum?: number, expects?: string }

/** A variable is text: here it becomes what its schema asks for, where it can. */
export function readText (schema: Term, text: string): unknown {
  for (const term of schema.anyOf ?? [schema]) {
    if (term.type === 'integer' && /^\d{1,15}$/.test(text)) return Number(text)
    if (term.const === false && text === 'off') return false
    if (term.type === 'boolean' && (text === 'on' || text === 'off')) return text === 'on'
  }
  return text
}

/** What a variable must be, in words. */
export function describeTerm (term: Term): string {
  if (term.expects !== undefined) return term.expects
  if (term.anyOf !== undefined) return term.anyOf.map(describeTerm).join(' or ')
  if (term.const !== undefined) return term.const === false ? 'off' : String(term.const)
  if (term.type === 'boolean') return 'on or off'
  return term.type === 'integer' ? `an integer from ${term.minimum} to ${term.maximum}` : 'a text that is not too long'
}

/** An address, or a network as address/bits; what proxies are named by. */
export function isNetwork (text: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  try {
    if (bits !== undefined) new BlockList().addSubnet(address, /^\d+$/.test(bits) ? Number(bits) : -1, version === 6 ? 'ipv6' : 'ipv4')
    return true
  } catch {
    return false
  }
}
