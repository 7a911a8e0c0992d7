/** Milliseconds that a part of the service waits for its own work when it closes. Afterwards it aborts or drops the rest. */
export const CLOSE_LIMIT = 4_000

/** Resolves when the work has ended, and after the limit at the latest. */
export async function waitForEnd (work: Promise<unknown>, limit = CLOSE_LIMIT): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, limit)
  await Promise.race([work, promise])
  clearTimeout(timer)
}
