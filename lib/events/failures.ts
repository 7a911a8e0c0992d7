import { type KeyObject, createHmac } from 'node:crypto'
import type { Reason } from '../../schemas/reason.ts'
import { defined } from '../defined.ts'
import type { Timers } from '../timers.ts'
import { type Origin, findOrigin, runFor } from './origin.ts'
import type { Recorder } from './recorder.ts'
import { type Counted, createSeries } from './series.ts'
import type { Happening } from './types.ts'

/** Failures of a series that each become an event within an hour. */
const SINGLES = 10

/**
 * The same of attempts in a browser that is known for the account, and of those after a right first proof. They are summed up only beyond
 * that, so that none of a person's own is lost in those of others.
 */
const OWN_SINGLES = 100

/** Characters of the hash that is recorded instead of the typed account. */
const HASH_LENGTH = 22

/** The names of what strangers can make up. Ids of users have no space. */
const UNKNOWN = 'unknown accounts'
const DOCUMENT = 'client document'

interface FailureParts {
  recorder: Pick<Recorder, 'insert' | 'measure'>
  /** The key of the hashes. */
  getKey: () => KeyObject
  onError: (error: unknown) => void
  timers?: Timers
}

/** Why an attempt failed, and what was tried. */
export interface Failed {
  reason: Reason
  /** The method that was tried, if one was. */
  method?: Happening['method']
  /** In a browser in which the person has signed in, or after a right first proof. */
  isKnown?: boolean | undefined
}

/** What was tried of a person who has proved the step before. `reason` may be found after the response. */
export interface FailedFactor extends Omit<Failed, 'reason'> {
  reason: Reason | (() => Promise<Reason>)
}

type Via = NonNullable<Happening['via']>

/** Records failures and refusals. Anyone can cause as many of them as the limits allow. */
export function createFailures ({ getKey, ...parts }: FailureParts) {
  const { admit, write, defer, settle, flush, close } = createSeries({ ...parts, singles: SINGLES, outcome: 'failure' })

  function record (happening: Happening, { summary = happening, ...counted }: Omit<Counted, 'summary'> & { summary?: Happening }): void {
    const single = { outcome: 'failure' as const, ...happening }
    if (admit(single, { ...counted, summary: { outcome: 'failure', ...summary } })) write(single)
  }

  /** What is about an account. @param isKnown it was caused in a session of that account, or in a browser in which it has signed in */
  const recordOf = (user_id: string, happening: Omit<Happening, 'id'>, isKnown = false, singles?: number): void =>
    record({ ...happening, id: user_id }, { name: user_id, user_id, singles, ...(isKnown && { known: user_id }) })

  const recordAttempt = (user_id: string, happening: Omit<Happening, 'id'>, isKnown = false): void =>
    recordOf(user_id, happening, isKnown, isKnown ? OWN_SINGLES : undefined)

  /** An attempt to sign in: with the client that it was for. */
  const toAttempt = (type: 'sign_in.failed' | 'factor.failed', { reason, method }: Failed): Omit<Happening, 'id'> =>
    defined({ type, reason, method, client_id: findOrigin()?.client_id })

  /** One series of each reason for all unknown accounts, since anyone can make up more of them. */
  function recordUnknown (happening: Pick<Happening, 'id' | 'via'>, failed: Failed): void {
    const attempt = { ...toAttempt('sign_in.failed', failed), kind: 'unknown' }
    record({ ...attempt, ...happening }, { name: UNKNOWN, summary: { ...attempt, id: '' } })
  }

  return {
    /**
     * Records a failed sign-in.
     * @param user_id the user whose account was tried; absent for an unknown account
     * @param typed the account as it was typed
     */
    recordSignIn (user_id: string | undefined, typed: string, failed: Failed): void {
      if (user_id !== undefined) return recordAttempt(user_id, toAttempt('sign_in.failed', failed), failed.isKnown)
      recordUnknown({ id: createHmac('sha256', getKey()).update(typed).digest('base64url').slice(0, HASH_LENGTH) }, failed)
    },

    /** Records that somebody could not sign in by another provider. @param user_id the holder of the identity; absent if it has none */
    recordIdentity (user_id: string | undefined, via: Via, failed: Failed): void {
      if (user_id !== undefined) return recordAttempt(user_id, { ...toAttempt('sign_in.failed', failed), via }, failed.isKnown)
      recordUnknown({ id: via.subject ?? '', via }, failed)
    },

    /** Records that an identity did not join an account by itself that has its address. @param via with the previous identity, if the account has it */
    recordRefusedIdentity (user_id: string, via: Via): void {
      recordOf(user_id, { type: 'identity.refused', reason: 'taken', via })
    },

    /** Records that someone in a signed-in session did not know the user's password. */
    recordConfirmation (user_id: string, reason: Reason): void {
      recordOf(user_id, { type: 'user.confirmation_failed', reason }, true)
    },

    /** Records a wrong code or passkey. */
    recordFactor (user_id: string, { reason, isKnown = true, ...tried }: FailedFactor): void {
      const write = (found: Reason) => recordAttempt(user_id, toAttempt('factor.failed', { ...tried, reason: found }), isKnown)
      if (typeof reason === 'string') write(reason)
      else defer(async () => write(await reason()))
    },

    /** Does something about a failure after the response. */
    defer,

    /**
     * Records that the document of a client was refused.
     * @param host of a client that people have consented to. Absent: anybody can make up more of them, so they share one series
     */
    recordDocument (id: string, host: string | undefined, refusal: NonNullable<Happening['refusal']>): void {
      const happening = { type: 'client.document_refused' as const, user_id: null }
      const summary = host === undefined ? { ...happening, id: '' } : { ...happening, refusal, id: `https://${host}` }
      record({ ...happening, refusal, id }, { name: host === undefined ? DOCUMENT : `${DOCUMENT} ${host}`, summary })
    },

    /** Records that a caller was refused an operation for administrators. */
    recordRefusal (operation: string, origin: Origin): void {
      const caller = origin.readCaller?.()
      const { user_id, client_id = '' } = caller ?? {}
      const name = user_id ?? `client ${client_id}`
      runFor(origin, () => record({ type: 'operation.refused', id: operation }, { name, user_id, known: name, caller }))
    },

    settle,
    flush,
    close
  }
}

export type Failures = ReturnType<typeof createFailures>
