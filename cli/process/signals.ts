const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** Milliseconds beyond the time that requests have, in which the store is closed. */
export const STORE_CLOSE = 5000

/** Of a Ctrl-C both the terminal and npm tell this process: what follows within these milliseconds is the same signal. */
const ECHO = 500

export interface Endings {
  /** The first signal: end in good order. */
  close (signal: string): void
  /** A second one: end at once. */
  cut (signal: string): void
}

/** Takes the signals that end a process. */
export function obeySignals ({ close, cut }: Endings): void {
  let since: number | undefined
  for (const signal of SIGNALS) {
    // Whoever listened before has had his part: from here on the process serves.
    process.removeAllListeners(signal)
    process.on(signal, () => {
      if (since === undefined) {
        since = performance.now()
        close(signal)
      } else if (performance.now() - since > ECHO) {
        cut(signal)
      }
    })
  }
}
