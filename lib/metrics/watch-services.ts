import { IdentityError } from '../errors.ts'
import type { SignIns } from '../sign-in/sign-ins.ts'
import type { Caller, Tokens } from '../tokens/tokens.ts'
import type { Meter, Outcome } from './meter.ts'

/** `error` for an error of the service, `limited` for a refusal by a limit, and `failure` for any other error caused by the caller. */
function toOutcome (error: unknown): Outcome {
  if (!(error instanceof IdentityError) || error.statusCode >= 500) return 'error'
  return error.code === 'ErrLimit' ? 'limited' : 'failure'
}

/** Wraps the tokens to count checks and mints. */
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
    authenticate (token, again) {
      if (again === true) return tokens.authenticate(token, true)
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

/** Wraps the sign-ins to count each submitted form. */
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
    async proceed (secret, proved) {
      const outcome = await signIns.proceed(secret, proved)
      if ('done' in outcome) meter.signIn('success', outcome.done.amr.join('+'))
      return outcome
    }
  }
}
