import { statSync } from 'node:fs'
import { IdentityError } from '../errors.ts'
import type { SignIns } from '../sign-in/sign-ins.ts'
import { parsePath } from '../store/sqlite.ts'
import type { Caller, Tokens } from '../tokens/tokens.ts'
import type { Meter, Outcome } from './meter.ts'

/** An error that callers cause is a failure; ours is an error. */
function toOutcome (error: unknown): Outcome {
  if (!(error instanceof IdentityError) || error.statusCode >= 500) return 'error'
  return error.code === 'ErrLimit' ? 'limited' : 'failure'
}

/** The tokens, with checks and mints counted. */
export function watchTokens (tokens: Tokens, meter: Meter): Tokens {
  const count = (caller: Caller) => {
    meter.tokenCheck('success')
    return caller
  }
  const fail = (error: unknown): never => {
    meter.tokenCheck(toOutcome(error))
    throw error
  }
  return {
    ...tokens,
    authenticate (token) {
      let found
      try {
        found = tokens.authenticate(token)
      } catch (error) {
        return fail(error)
      }
      return found instanceof Promise ? found.then(count, fail) : count(found)
    },
    async mint (options) {
      const minted = await tokens.mint(options)
      meter.tokens('mint')
      return minted
    }
  }
}

/** The sign-ins, with each form that was sent counted. */
export function watchSignIns (signIns: SignIns, meter: Meter): SignIns {
  return {
    ...signIns,
    async submit (secret, attempt) {
      try {
        const outcome = await signIns.submit(secret, attempt)
        if ('done' in outcome) meter.signIn('success', outcome.done.amr.join('+'))
        else if ('again' in outcome) meter.signIn('failure', outcome.again.amr)
        return outcome
      } catch (error) {
        meter.signIn(toOutcome(error), (await signIns.find(secret)).amr)
        throw error
      }
    },
    async complete (progress) {
      const completed = await signIns.complete(progress)
      meter.signIn('success', progress.amr.join('+'))
      return completed
    }
  }
}

/** @param database the store's URL; undefined where the store was handed in */
export function readWalSize (database: string | undefined): number | undefined {
  if (database?.startsWith('sqlite:') !== true || database === 'sqlite::memory:') return
  return statSync(`${parsePath(database)}-wal`, { throwIfNoEntry: false })?.size ?? 0
}
