/**
 * Bounds of the parameters of a request, in bytes. Anybody may begin a sign-in or a sign-out, and what they send is stored until a
 * person answers.
 */
const LIMITS: Readonly<Record<string, number>> = { state: 4096, nonce: 2048, login_hint: 2048, ui_locales: 2048 }

/** All parameters together. */
const ALL = 8192

/** The most bytes of a pushed request, with the client's credentials. */
export const PUSHED_BODY = 16 * 1024

const measure = (value: unknown): number => typeof value === 'string' ? Buffer.byteLength(value) : value === undefined ? 0 : JSON.stringify(value).length

/** The reason why the parameters are too long; undefined if they are not. `name` is the parameter, if it is a single one. */
export function findTooLong (params: Readonly<Record<string, unknown>>): { name?: string, reason: string } | undefined {
  for (const [name, limit] of Object.entries(LIMITS)) {
    if (measure(params[name]) > limit) return { name, reason: `${name} must have at most ${limit} bytes` }
  }
  const sum = Object.entries(params).reduce((total, [name, value]) => total + name.length + measure(value), 0)
  return sum > ALL ? { reason: `the parameters must have at most ${ALL} bytes in all` } : undefined
}
