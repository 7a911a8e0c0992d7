/** An http URI on this device (RFC 8252, 7.3); `$1` is its host. As text, because URL also reads `127.1` as 127.0.0.1. */
export const LOOPBACK_URI = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(?::\d*)?(?=[/?]|$)/i

/** Whether a URL's hostname is this device. */
export function isLoopbackHost (hostname: string): boolean {
  return /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname)
}
