export interface RawRequest {
  method?: string
  path: string
  headers?: Record<string, string>
  /** A string is sent as it is, an object as JSON. */
  body?: object | string
}

/** The bytes of an HTTP/1.1 request. */
export function toRaw ({ method = 'GET', path, headers = {}, body }: RawRequest): string {
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const all: Record<string, string> = {
    host: '127.0.0.1',
    ...headers,
    ...(typeof body === 'object' && { 'content-type': 'application/json' }),
    // The driver replaces `{counter}` by ten digits.
    ...(text !== undefined && { 'content-length': String(Buffer.byteLength(text.replace('{counter}', '0'.repeat(10)))) })
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  return [`${method} ${path} HTTP/1.1`, ...lines, '', text ?? ''].join('\r\n')
}

export function bearer (token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` }
}
