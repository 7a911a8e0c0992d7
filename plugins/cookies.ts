import type { FastifyRequest } from 'fastify'

/** The value of a cookie (RFC 6265, 5.4). Ours have no characters that need decoding. */
export function readCookie ({ headers: { cookie = '' } }: FastifyRequest, name: string): string | undefined {
  return cookie.split(';').map((pair) => pair.trim()).find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}
