import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import { FairQueue, type Turn } from '../fair-queue.ts'
import { OutboundError } from '../outbound/fetcher.ts'
import { type Answer, FormerSystemError, type Put, type Question, readAnswer } from './answer.ts'

/** Milliseconds for an answer. */
const TIMEOUT = 3_000

/** Milliseconds for which a system that hangs or errs is left alone. */
const REST = 30_000

/** The most questions that this process asks at once, and the most that wait. */
const AT_ONCE = 20
const MOST_WAITING = 200

/** Milliseconds that a question is expected to take, until one is measured, and that it may wait for its turn. */
const EXPECTED = 500
const LONGEST_WAIT = 2 * TIMEOUT

/** Networks, and accounts, whose questions must have failed before the system is left alone: a stranger chooses one of each. */
const SEVERAL = 3

/** Networks of which the last fault is remembered. */
const MOST_FAULTS = 100

/** Answers whose durations are kept. */
const MOST_TIMES = 64

/** What became of a question. `resting`: it was not put. */
export type Outcome = 'right' | 'wrong' | 'failed' | 'resting'

const explain = (error: unknown): string => error instanceof FormerSystemError ? error.message : error instanceof OutboundError ? error.code : 'an error'

/** Settles by the deadline, also where the function that is asked does not. */
async function within (put: Put, question: Question): Promise<Answer> {
  const ending = new AbortController()
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    late.reject(new FormerSystemError('no answer in time'))
    ending.abort()
  }, TIMEOUT)
  try {
    return readAnswer(await Promise.race([put(question, ending.signal), late.promise]))
  } finally {
    clearTimeout(timer)
  }
}

/** Puts questions to the former system, within bounds. */
export function createQuestions (
  { put, now, onWarning, count = () => {} }: { put: Put, now: Clock, onWarning: (message: string) => void, count?: ((outcome: Outcome) => void) | undefined }
) {
  const queue = new FairQueue({ what: 'questions to the old system', slots: AT_ONCE, places: MOST_WAITING, maxWait: LONGEST_WAIT, duration: EXPECTED })
  const times: number[] = []
  /** Faults since the last answer: the account of the last one of each network. */
  const faults = new Map<string, { account: string, at: number }>()
  let failedAt: number | undefined

  function isResting (): boolean {
    const age = failedAt === undefined ? REST : now() - failedAt
    return age >= 0 && age < REST
  }

  /** Whether the system fails for several people, and not for one account only. */
  function isDown ({ account }: Question, { group, key = '' }: Turn): boolean {
    const network = group ?? key
    faults.delete(network)
    faults.set(network, { account, at: now() })
    for (const [name, { at }] of faults) if (faults.size > MOST_FAULTS || now() - at >= REST) faults.delete(name)
    return new Set([...faults.values()].map((fault) => fault.account)).size >= SEVERAL
  }

  function noteFault (error: unknown, question: Question, turn: Turn): void {
    count('failed')
    if (!isDown(question, turn)) return
    // Questions that were put at the same time fail together.
    if (!isResting()) {
      onWarning(`the old system gave no answer (${explain(error)}): it is left alone for ${REST / 1000} s, and people who have not moved cannot sign in`)
    }
    failedAt = now()
  }

  return {
    isResting,

    /** Asks in turn. Null where there is no answer. @throws where the caller has disconnected */
    async ask (question: Question, turn: Turn = {}): Promise<Answer | null> {
      if (isResting()) {
        count('resting')
        return null
      }
      return await queue.run(async () => {
        if (isResting()) {
          count('resting')
          return null
        }
        const begin = performance.now()
        try {
          const answer = await within(put, question)
          faults.clear()
          count(answer.ok ? 'right' : 'wrong')
          times.push(performance.now() - begin)
          if (times.length > MOST_TIMES) times.shift()
          return answer
        } catch (error) {
          // Before the place is free: the next question must see it.
          noteFault(error, question, turn)
          return null
        }
      }, turn).catch((error: unknown) => {
        if (!(error instanceof IdentityError) || error.code !== 'ErrBusy') throw error
        count('resting')
        return null
      })
    },

    /** Takes as long as one of the latest questions did, so that the time of a refusal does not tell who was asked about. */
    async pretend (): Promise<void> {
      if (!isResting() && times.length > 0) await sleep(times[randomInt(times.length)])
    }
  }
}

export type Questions = ReturnType<typeof createQuestions>
