import { performance } from 'node:perf_hooks'

const { nodeTiming } = performance

/**
 * Identifies the current turn of the event loop: the number changes each time the loop polls for I/O. Everything that runs
 * in one turn was triggered by I/O that was ready at that poll, or by timers and callbacks that follow from it.
 */
export function getTurn (): number {
  // libuv counts an iteration before its poll, and events after their callbacks: a busy iteration may poll several times.
  const { loopCount, events } = nodeTiming.uvMetricsInfo
  return loopCount + events
}
