import { type KeyObject, createHmac } from 'node:crypto'
import type { Timers } from '../timers.ts'
import { type Origin, runFor } from './origin.ts'
import type { Recorder } from './recorder.ts'
import { type Counted, createSeries } from './series.ts'
import type { Happening } from './types.ts'

/** Failures of a series that each become an event within an hour. */
const SINGLES = 10

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

/** Records failures and refusals. Anyone can cause as many of them as the limits allow. */
export function createFailures ({ getKey, ...parts }: FailureParts) {
  const { admit, write, settle, flush, close } = createSeries({ ...parts, singles: SINGLES, outcome: 'failure' })

  function record (happening: Happening, { summary = happening, ...counted }: Omit<Counted, 'summary'> & { summary?: Happening }): void {
    const single = { outcome: 'failure' as const, ...happening }
    if (admit(single, { ...counted, summary: { outcome: 'failure', ...summary } })) write(single)
  }

  /** What is about an account. @param isKnown it was caused in a session of that account, or in a browser in which it has signed in */
  const recordOf = (user_id: string, happening: Omit<Happening, 'id'>, isKnown: boolean): void =>
    record({ ...happening, id: user_id }, { name: user_id, user_id, ...(isKnown && { known: user_id }) })

  /** One series for all unknown accounts, since anyone can make up more of them. */
  const recordUnknown = (happening: Pick<Happening, 'id' | 'via'>): void => record(
    { type: 'sign_in.failed', kind: 'unknown', ...happening }, { name: UNKNOWN, summary: { type: 'sign_in.failed', kind: 'unknown', id: '' } }
  )

  return {
    /**
     * Records a failed sign-in.
     * @param user_id the user whose password was guessed; absent for an unknown account
     * @param typed the account as it was typed
     * @param isKnown in a browser in which the user has signed in
     */
    recordSignIn (user_id: string | undefined, typed: string, isKnown = false): void {
      if (user_id !== undefined) return recordOf(user_id, { type: 'sign_in.failed' }, isKnown)
      recordUnknown({ id: createHmac('sha256', getKey()).update(typed).digest('base64url').slice(0, HASH_LENGTH) })
    },

    /** Records that an identity at another provider could not sign in. @param user_id the holder of the identity; absent if it has none */
    recordIdentity (user_id: string | undefined, via: NonNullable<Happening['via']>): void {
      if (user_id !== undefined) return recordOf(user_id, { type: 'sign_in.failed', via }, false)
      recordUnknown({ id: via.subject, via })
    },

    /** Records that an identity did not join an account by itself that has its address. @param via with the former identity, if the account has it */
    recordRefusedIdentity (user_id: string, via: NonNullable<Happening['via']>): void {
      recordOf(user_id, { type: 'identity.refused', via }, false)
    },

    /** Records that someone in a signed-in session did not know the user's password. */
    recordConfirmation (user_id: string): void {
      recordOf(user_id, { type: 'user.confirmation_failed' }, true)
    },

    /** Records a wrong code of a second factor or for recovery. @param isKnown they have proved the step before */
    recordFactor (user_id: string, isKnown = true): void {
      recordOf(user_id, { type: 'factor.failed' }, isKnown)
    },

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
