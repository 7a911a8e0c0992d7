import { performance } from 'node:perf_hooks'

const { nodeTiming } = performance

/**
 * Returns a number that identifies the current turn of the event loop: it increases each time the loop polls for I/O.
 * All requests of one turn are on connections that were readable at the same poll.
 */
export function getTurn (): number {
  // libuv counts an iteration before it polls. With many events it polls again, after it counted those of the first poll.
  const { loopCount, events } = nodeTiming.uvMetricsInfo
  return loopCount + events
}
