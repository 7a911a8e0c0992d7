import { type KeyObject, createHmac } from 'node:crypto'
import type { Timers } from '../timers.ts'
import { type Origin, runFor } from './origin.ts'
import type { Recorder } from './recorder.ts'
import { createSeries } from './series.ts'
import type { Happening } from './types.ts'

/** Failures of a series that each become an event within an hour. */
const SINGLES = 10

/** Characters of the hash that is recorded instead of the typed account. */
const HASH_LENGTH = 22

type Caller = ReturnType<NonNullable<Origin['readCaller']>>

interface FailureParts {
  recorder: Pick<Recorder, 'insert'>
  /** The key of the hashes. */
  getKey: () => KeyObject
  onError: (error: unknown) => void
  timers?: Timers
}

/** Records failures and refusals. Anyone can cause as many of them as the limits allow. */
export function createFailures ({ getKey, ...parts }: FailureParts) {
  const { admit, write, settle, flush, close } = createSeries({ ...parts, singles: SINGLES, isFullAdmitted: false })

  function record (series: string, happening: Happening, { summary = happening, caller }: { summary?: Happening, caller?: Caller } = {}): void {
    if (admit(series, { outcome: 'failure', ...summary }, caller)) write({ outcome: 'failure', ...happening })
  }

  return {
    /**
     * Records a failed sign-in.
     * @param user_id the user whose password was guessed; absent for an unknown account
     * @param typed the account as it was typed
     */
    recordSignIn (user_id: string | undefined, typed: string): void {
      if (user_id !== undefined) return record(user_id, { type: 'sign_in.failed', id: user_id })
      const id = createHmac('sha256', getKey()).update(typed).digest('base64url').slice(0, HASH_LENGTH)
      // One series for all unknown accounts, since anyone can make up more of them.
      record('unknown', { type: 'sign_in.failed', kind: 'unknown', id }, { summary: { type: 'sign_in.failed', kind: 'unknown', id: '' } })
    },

    /** Records that an identity at another provider could not sign in. @param user_id the holder of the identity; absent if it has none */
    recordIdentity (user_id: string | undefined, via: NonNullable<Happening['via']>): void {
      if (user_id !== undefined) return record(user_id, { type: 'sign_in.failed', id: user_id, via })
      record('unknown', { type: 'sign_in.failed', kind: 'unknown', id: via.subject, via }, { summary: { type: 'sign_in.failed', kind: 'unknown', id: '' } })
    },

    /** Records that an identity did not join an account by itself that has its address. @param via with the former identity, if the account has it */
    recordRefusedIdentity (user_id: string, via: NonNullable<Happening['via']>): void {
      record(`identity ${user_id}`, { type: 'identity.refused', id: user_id, via })
    },

    /** Records that someone in a signed-in session did not know the user's password. */
    recordConfirmation (user_id: string): void {
      record(`confirmation ${user_id}`, { type: 'user.confirmation_failed', id: user_id })
    },

    /** Records a wrong code of a second factor or for recovery. */
    recordFactor (user_id: string): void {
      record(`factor ${user_id}`, { type: 'factor.failed', id: user_id })
    },

    /** Records that the document of a client was refused. Anybody can make up more of them, so those of one host are one series. */
    recordDocument (id: string, host: string, refusal: NonNullable<Happening['refusal']>): void {
      const happening = { type: 'client.document_refused' as const, user_id: null, refusal }
      record(`document ${host}`, { ...happening, id }, { summary: { ...happening, id: `https://${host}` } })
    },

    /** Records that a caller was refused an operation for administrators. */
    recordRefusal (operation: string, origin: Origin): void {
      const caller = origin.readCaller?.()
      runFor(origin, () => record(`refusal ${caller?.user_id ?? caller?.client_id}`, { type: 'operation.refused', id: operation }, { caller }))
    },

    settle,
    flush,
    close
  }
}

export type Failures = ReturnType<typeof createFailures>
