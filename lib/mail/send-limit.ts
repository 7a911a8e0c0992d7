import { TIMERS, type Timers } from '../timers.ts'
import { SEND_TIMEOUT } from './port.ts'

/**
 * Sends with a signal that aborts with the given one, or when the time for one mail is over. The timer ends with the call: in
 * `AbortSignal.any`, one of `AbortSignal.timeout` stays until its time is over.
 */
export async function sendInTime<T> (signal: AbortSignal, send: (signal: AbortSignal) => Promise<T>, timers: Timers = TIMERS): Promise<T> {
  const late = new AbortController()
  const timer = timers.set(() => late.abort(new DOMException('the mail was not sent in time', 'TimeoutError')), SEND_TIMEOUT)
  timer.unref?.()
  try {
    return await send(AbortSignal.any([signal, late.signal]))
  } finally {
    timers.clear(timer)
  }
}
