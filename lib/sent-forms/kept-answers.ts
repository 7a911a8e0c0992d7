import type { Clock } from '../clock.ts'

/** Answers that are kept at once. */
const MOST = 1000

/** An answer that a browser was given last. */
export interface KeptAnswer {
  browser: string
  network: string
  at: number
  /** Sealed by the form that it answers, so that only who sends that form again can open it. */
  sealed: string
}

/** The last answer to a form of each browser, in memory. When all places are taken, the network with the most answers loses its oldest. */
export function createKeptAnswers (now: Clock, life: number) {
  /** By the form, the oldest first. */
  const answers = new Map<string, KeptAnswer>()
  const byBrowser = new Map<string, string>()

  function remove (id: string): void {
    const found = answers.get(id)
    if (found === undefined) return
    answers.delete(id)
    if (byBrowser.get(found.browser) === id) byBrowser.delete(found.browser)
  }

  function dropExpired (): void {
    for (const [id, { at }] of answers) {
      if (at + life > now()) return
      remove(id)
    }
  }

  function evict (): void {
    const counts = new Map<string, number>()
    for (const { network } of answers.values()) counts.set(network, (counts.get(network) ?? 0) + 1)
    const most = Math.max(...counts.values())
    for (const [id, { network }] of answers) if (counts.get(network) === most) return remove(id)
  }

  const drop = (browser: string): void => {
    const id = byBrowser.get(browser)
    if (id !== undefined) remove(id)
  }

  return {
    add (id: string, answer: KeptAnswer): void {
      drop(answer.browser)
      dropExpired()
      if (answers.size >= MOST) evict()
      answers.set(id, answer)
      byBrowser.set(answer.browser, id)
    },
    find (id: string): KeptAnswer | undefined {
      dropExpired()
      return answers.get(id)
    },
    drop
  }
}
