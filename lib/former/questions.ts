import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import { OutboundError } from '../outbound/fetcher.ts'
import { Slots } from '../work/slots.ts'
import { type Answer, FormerSystemError, type Put, type Question, readAnswer } from './answer.ts'

/** Milliseconds for an answer. */
const TIMEOUT = 3_000

/** Milliseconds for which a system that hangs or errs is left alone. */
const REST = 30_000

/** The most questions that this process asks at once, and the most that wait. */
const AT_ONCE = 20
const MOST_WAITING = 200

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
  const slots = new Slots({ size: AT_ONCE, waiting: MOST_WAITING })
  const times: number[] = []
  let failedAt: number | undefined

  function isResting (): boolean {
    const age = failedAt === undefined ? REST : now() - failedAt
    return age >= 0 && age < REST
  }

  function rest (error: unknown): void {
    count('failed')
    // Questions that were put at the same time fail together.
    if (!isResting()) onWarning(`the former system gave no answer (${explain(error)}): it is left alone for ${REST / 1000} s, and people who have not moved cannot sign in`)
    failedAt = now()
  }

  return {
    isResting,

    /** Null where there is no answer. */
    async ask (question: Question): Promise<Answer | null> {
      if (isResting() || slots.isFull) {
        count('resting')
        return null
      }
      const begin = performance.now()
      return await slots.run(async () => {
        if (isResting()) {
          count('resting')
          return null
        }
        try {
          const answer = await within(put, question)
          count(answer.ok ? 'right' : 'wrong')
          times.push(performance.now() - begin)
          if (times.length > MOST_TIMES) times.shift()
          return answer
        } catch (error) {
          // Before the slot is free: the next question must see it.
          rest(error)
          return null
        }
      })
    },

    /** Takes as long as one of the latest questions did, so that the time of a refusal does not tell who was asked about. */
    async pretend (): Promise<void> {
      if (!isResting() && times.length > 0) await sleep(times[randomInt(times.length)])
    }
  }
}

export type Questions = ReturnType<typeof createQuestions>
