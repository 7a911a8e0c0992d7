import { Histogram } from '../driver/histogram.ts'
import type { RepeatOptions, Sample } from '../types.ts'

let count = 0

/** Creates users in the server's own process: the cost without HTTP. */
export async function repeat (create: (account: string) => Promise<unknown>, { concurrency, seconds }: RepeatOptions): Promise<Sample> {
  const histogram = new Histogram()
  const before = process.cpuUsage()
  const start = performance.now()
  await Promise.all(Array.from({ length: concurrency }, async () => {
    for (let since = start; since < start + seconds * 1000;) {
      await create(`direct${count++}@example.com`)
      const now = performance.now()
      histogram.record(now - since)
      since = now
    }
  }))
  const elapsed = performance.now() - start
  const { user, system } = process.cpuUsage(before)
  return {
    rate: histogram.count / elapsed * 1000,
    p50: histogram.percentile(0.5),
    p99: histogram.percentile(0.99),
    cpu: (user + system) / histogram.count,
    cores: (user + system) / 1000 / elapsed,
    rss: process.memoryUsage.rss() / 2 ** 20
  }
}
