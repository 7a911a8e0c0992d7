import { hash } from 'node:crypto'
import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import { createSecretBox } from '../crypto/secrets.ts'
import { type Document, DuplicateKeyError } from '../store/port.ts'
import { type KeptAnswer, createKeptAnswers } from './kept-answers.ts'

/** Milliseconds for which a repeat waits for the first form, and sees its answer. */
export const REPEATS = 30_000

/** Milliseconds for which the id of a form stays spent. */
const SPENT = 24 * 60 * 60_000

/** Milliseconds between two looks at a form that another process is working on: at first, and at most. */
const LOOK = 50
const LONGEST_LOOK = 1000

/** A form that was sent. Its id is a hash of the browser's secret, the form and its fields. */
interface SentFormRecord extends Document {
  created_at: string
  expired_at: string
  /** Whether it was carried out. Before, a process is at work, or has died meanwhile. */
  done: boolean
  /** The page that it has led to, sealed by the form itself: only who sends it again can open it. */
  to?: string
}

/** What makes two forms the same. */
export interface SentForm {
  /** The secret of the browser. */
  browser: string
  /** The one-time id that its page carries. */
  id: string
  /** The path with its query. */
  path: string
  fields: readonly (readonly [name: string, value: string])[]
  /** The address that the request comes from, for the share of the memory. */
  network: string
}

/** An answer as a browser gets it. */
export interface Answer {
  status: number
  headers: Record<string, string | number>
  cookies: string[]
  body: string
  /** The sign-in session of the browser after it. */
  session: string | undefined
}

/**
 * What became of a form. `changed`: it was carried out, and is not once more. `unchanged`: the answer only asks for more or refuses, so a
 * form that is sent later is judged anew.
 */
export type Outcome = 'changed' | 'unchanged'

/** The first of several equal forms. */
export interface Run {
  /**
   * @param answer absent if it is not kept for repeats, such as a long download
   * @param to the page that the form has led to
   */
  finish (answer: Answer | undefined, outcome: Outcome, to?: string): Promise<void>
  /** Gives the form back: the next repeat is carried out as if it were the first. */
  giveBack (): Promise<void>
}

/** `done`: it was carried out, or may have been, and its answer is not here. */
export type Turn = { run: Run } | { answer: Answer } | { done: { to?: string } }

type Settled = Exclude<Turn, { run: Run }> | 'given back'

/**
 * One rule for forms that are sent twice, such as by a double click: of equal forms of one browser, one is carried out. The id is spent in
 * the store before the change, so that this holds for all processes, and also after a crash.
 */
export function createSentForms ({ store, now }: Pick<Base, 'store' | 'now'>) {
  const records = store.collection<SentFormRecord>('sent_forms')
  /** The forms that this process is working on. */
  const running = new Map<string, Promise<Settled>>()
  const kept = createKeptAnswers(now, REPEATS)

  /** Resolves to null when the form was not sent before, and is spent now. */
  async function spend (id: string): Promise<SentFormRecord | null> {
    try {
      await records.insert({ id, created_at: toTimestamp(now()), expired_at: toTimestamp(now() + SPENT), done: false })
      return null
    } catch (error) {
      if (!(error instanceof DuplicateKeyError)) throw error
    }
    // Null: given back in this moment.
    return await records.get(id) ?? await spend(id)
  }

  /** Waits for another process. Null when it has given the form back, and this one has spent it. */
  async function follow (id: string): Promise<SentFormRecord | null> {
    const end = performance.now() + REPEATS
    let delay = LOOK
    let found = await spend(id)
    while (found !== null && !found.done && performance.now() < end && Date.parse(found.created_at) + REPEATS > now()) {
      await new Promise((resolve) => setTimeout(resolve, delay))
      delay = Math.min(delay * 2, LONGEST_LOOK)
      found = await spend(id)
    }
    return found
  }

  async function wait (first: Promise<Settled>): Promise<Settled> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<Settled>((resolve) => { timer = setTimeout(() => resolve({ done: {} }), REPEATS) })
    return await Promise.race([first, late]).finally(() => clearTimeout(timer))
  }

  const openBox = (key: string) => createSecretBox(hash('sha256', `sealed ${key}`, 'buffer'))

  /** Carries out a form that is not running here, or finds what another process has made of it. */
  async function begin (id: string, key: string, { browser, network }: SentForm, isStored: boolean): Promise<Turn> {
    const { promise, resolve } = Promise.withResolvers<Settled>()
    running.set(id, promise)
    const settle = (settled: Settled) => {
      running.delete(id)
      resolve(settled)
    }
    try {
      const found = isStored ? await follow(id) : null
      const box = openBox(key)
      if (found !== null) {
        const turn = { done: found.to === undefined ? {} : { to: box.open(found.to, id) } }
        settle(turn)
        return turn
      }
      const release = async () => { if (isStored) await records.delete(id) }
      return {
        run: {
          async finish (answer, outcome, to) {
            try {
              if (outcome === 'changed' && answer !== undefined) kept.add(id, { browser, network, at: now(), sealed: box.seal(JSON.stringify(answer), id) })
              if (outcome !== 'changed') await release()
              else if (isStored) await records.update(id, { set: { done: true, to: to === undefined ? undefined : box.seal(to, id) } })
            } finally {
              settle(answer === undefined ? { done: {} } : { answer })
            }
          },
          async giveBack () {
            try {
              await release()
            } finally {
              settle('given back')
            }
          }
        }
      }
    } catch (error) {
      settle('given back')
      throw error
    }
  }

  return {
    /**
     * Judges a form that has come.
     * @param options.isStored false: for an answer that the store makes once by itself
     */
    async send (form: SentForm, { isStored = true } = {}): Promise<Turn> {
      const key = JSON.stringify([form.browser, form.id, form.path, form.fields])
      const id = hash('sha256', `form ${key}`, 'base64url')
      for (;;) {
        const first = running.get(id)
        if (first === undefined) {
          const answer: KeptAnswer | undefined = kept.find(id)
          if (answer === undefined) return await begin(id, key, form, isStored)
          return { answer: JSON.parse(openBox(key).open(answer.sealed, id)) as Answer }
        }
        const settled = await wait(first)
        if (settled !== 'given back') return settled
      }
    },

    /** Forgets the answer that a browser was given: it shows another page, or its session has ended. */
    forget: kept.drop
  }
}

export type SentForms = ReturnType<typeof createSentForms>
