/**
 * The former system that people move from: it is asked at their first sign-in, and never again (docs/moving.md).
 * @module
 */
import type { Options } from '../../schemas/options.ts'
import { IdentityError } from '../errors.ts'
import type { Turn } from '../fair-queue.ts'
import { toRefused } from '../import/refused.ts'
import type { Outbound } from '../outbound/fetcher.ts'
import { type UserRecord, hasFormerPassword, isActive } from '../records/user.ts'
import { toTimestamp } from '../clock.ts'
import { checkAccount } from '../checks.ts'
import { findByName } from '../users/addresses.ts'
import { type FormerFunctions, callFunctions, callUrl } from './call.ts'
import { isOver } from './end.ts'
import { type MoveParts, createMove } from './move.ts'
import { type Outcome, createQuestions } from './questions.ts'

type Settings = NonNullable<Options['migrate']>

/** The option `migrate`: a URL, or functions. */
export type Migrate = Settings | (Omit<Settings, 'url' | 'secret'> & FormerFunctions)

interface FormerParts extends Omit<MoveParts, 'trustEmails'> {
  migrate: Migrate
  outbound: Pick<Outbound, 'read'>
  onWarning: (message: string) => void
  /** Counts a question. */
  count?: ((outcome: Outcome) => void) | undefined
}

function readName (account: string): string | null {
  try {
    return checkAccount(account)
  } catch (error) {
    if (error instanceof IdentityError) return null
    throw error
  }
}

export function openFormer ({ migrate, outbound, onWarning, count, ...parts }: FormerParts) {
  const { now, stored, passwords } = parts
  const { create = false, trustEmails = false } = migrate
  const put = 'verify' in migrate ? callFunctions(migrate) : callUrl(migrate as Settings & { url: string, secret: string }, outbound.read, now)
  const { ask, pretend, isResting } = createQuestions({ put, now, onWarning, count })
  const { complete, createPerson } = createMove({ ...parts, trustEmails })

  /** The person who was here first, if another request has brought them in meanwhile. */
  async function findMoved (account: string, password: string): Promise<UserRecord | null> {
    const moved = await findByName(stored.users, account)
    const isTheirs = moved?.password ? await passwords.verify(password, moved.password, undefined, account) : false
    return isTheirs && isActive(moved!, toTimestamp(now())) ? moved : null
  }

  /**
   * Somebody whom the former system has vouched for, or whom `find` finds otherwise. An answer that the rules of imports refuse brings in
   * nobody, and is reported without any value.
   */
  async function orElse (bringing: Promise<UserRecord | null>, find: () => Promise<UserRecord | null> = async () => null): Promise<UserRecord | null> {
    let problem: string | undefined
    const brought = await bringing.catch((error: unknown) => {
      problem = toRefused(error).message
      return null
    })
    const found = brought ?? await find()
    if (found === null && problem !== undefined) onWarning(`a person of the old system cannot be brought in: ${problem}`)
    return found
  }

  return {
    isResting,

    /** Whether it can be asked at present. */
    canAsk: (): boolean => !isOver(migrate, now()) && !isResting(),

    /**
     * Asks about the password of somebody who is marked or not here, and brings them in if it is right. For anybody else it only waits as
     * long as a question takes. Called inside the limits of guesses, after the comparison with the stored hash.
     * @param account as it was typed
     * @param turn networks take turns
     * @returns the person as written; null for a refusal; `unavailable` where the system could not be asked about somebody whose password it has
     */
    async verify (account: string, password: string, record: UserRecord | null, turn?: Turn): Promise<UserRecord | 'unavailable' | null> {
      if (isOver(migrate, now())) return record !== null && hasFormerPassword(record) ? 'unavailable' : null
      const name = readName(account)
      const isAsked = name !== null && password !== '' && (record === null ? create : hasFormerPassword(record) && isActive(record, toTimestamp(now())))
      if (!isAsked) {
        await pretend()
        return null
      }
      const answer = await ask({ type: 'password', account: record?.account ?? name, password }, turn)
      if (answer === null) return 'unavailable'
      if (!answer.ok) return null
      const moving = record === null ? createPerson(name, answer.person, password) : complete(record, answer.person, password)
      return await orElse(moving, async () => await findMoved(name, password))
    },

    /**
     * Brings in somebody who has lost their password, without one: the link that follows needs an address that the former system has
     * verified. Called by the sender of mails.
     * @throws Error without an answer, so that the mail is tried again
     */
    async find (account: string): Promise<void> {
      const name = readName(account)
      if (isOver(migrate, now()) || !create || !trustEmails || name === null) return
      const answer = await ask({ type: 'account', account: name }, { key: 'mails' })
      if (answer === null) throw new Error('the old system gave no answer')
      if (answer.ok) await orElse(createPerson(name, answer.person))
    }
  }
}

export type Former = ReturnType<typeof openFormer>
