import { TIMERS, type Timers } from '../timers.ts'
import { SEND_TIMEOUT } from './port.ts'

/**
 * Sends with a signal that aborts with `stopping`, or when the time for one mail is over. It ends with that signal, because the host's own
 * `send` may ignore it. The timer ends with the call: in `AbortSignal.any`, one of `AbortSignal.timeout` stays until its time is over.
 */
export async function sendInTime (stopping: AbortSignal, send: (signal: AbortSignal) => Promise<unknown>, timers: Timers = TIMERS): Promise<void> {
  const late = new AbortController()
  const timer = timers.set(() => late.abort(new DOMException('the mail was not sent in time', 'TimeoutError')), SEND_TIMEOUT)
  timer.unref?.()
  const signal = AbortSignal.any([stopping, late.signal])
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason as Error)
  signal.addEventListener('abort', abort)
  try {
    await Promise.race([send(signal), promise])
  } finally {
    timers.clear(timer)
    signal.removeEventListener('abort', abort)
  }
}
