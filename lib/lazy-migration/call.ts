import { generateId } from '../ids.ts'
import type { Clock } from '../clock.ts'
import type { Outbound } from '../outbound/fetcher.ts'
import { HEADERS } from '../webhooks/message.ts'
import { PREFIX, signMessage } from '../webhooks/secrets.ts'
import { FormerSystemError, type Put, type Question } from './answer.ts'

/** Bytes of an answer. */
const LIMIT = 16 * 1024

/**
 * Statuses that say something of the account, such as that it is locked, and not that the system is down: otherwise one account that a
 * stranger chooses would keep everybody from moving. 401 and 403 are about us.
 */
const ABOUT_ACCOUNT: readonly number[] = [404, 409, 422, 423, 429]

/** Functions of an embedder, in place of a URL. */
export interface FormerFunctions {
  /**
   * Whether the password is that of the account in the former system. An answer with fields says who it is.
   * @param options.signal aborted when the service waits no longer
   */
  verify (account: string, password: string, options: { signal: AbortSignal }): Promise<boolean | FormerPerson> | boolean | FormerPerson
  /** Who has the account, for somebody who has lost their password. Absent: such people are not found. */
  find? (account: string, options: { signal: AbortSignal }): Promise<FormerPerson | null> | FormerPerson | null
}

/** What the former system says of a person. */
export interface FormerPerson {
  id?: string
  name?: string
  email?: string
  email_verified?: boolean
}

/**
 * Asks functions. Of what they return, only `true` and a person are a yes. Their errors are not shown, because they may have the password.
 */
export function callFunctions ({ verify, find }: FormerFunctions): Put {
  const ask = async (question: Question, signal: AbortSignal): Promise<unknown> => question.type === 'password'
    ? await verify(question.account, question.password, { signal })
    : await find?.(question.account, { signal }) ?? false
  return async (question, signal) => {
    const answer = await ask(question, signal).catch(() => { throw new FormerSystemError('an error of the function') })
    if (typeof answer === 'boolean' || answer === null) return { ok: answer === true }
    // An answer as a URL gives it says itself whether it is a yes.
    return typeof answer === 'object' && !Array.isArray(answer) ? { ok: true, ...answer } : null
  }
}

/** Asks a URL: a POST whose body is signed as that of a webhook is, and whose answer is JSON. Redirects are not followed. */
export function callUrl ({ url, secret }: { url: string, secret: string }, read: Outbound['read'], now: Clock): Put {
  const key = secret.slice(PREFIX.length)
  return async (question, signal) => {
    const body = JSON.stringify(question)
    const headers = { ...HEADERS, accept: 'application/json', ...signMessage([key], { id: `ask_${generateId(now())}`, body }, now()) }
    const answer = await read({ url, method: 'POST', headers, body, limit: LIMIT, status: 200, signal })
    if (ABOUT_ACCOUNT.includes(answer.status)) return { ok: false }
    if (answer.status !== 200) throw new FormerSystemError(`status ${answer.status}`)
    if (!/^application\/json\s*(;|$)/i.test(answer.type)) throw new FormerSystemError('an answer that is not application/json')
    try {
      return JSON.parse(answer.body.toString()) as unknown
    } catch {
      throw new FormerSystemError('an answer that is not JSON')
    }
  }
}
