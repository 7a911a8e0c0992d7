import { IdentityError } from '../errors.ts'
import type { SignIns, SignedIn } from '../sign-in/sign-ins.ts'
import { AMR, type Proof } from '../proofs.ts'
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

/** The method of a step, as in the label of a sign-in. */
const toMethod = (kind: Proof['kind']): string => AMR[kind] ?? kind

/** Wraps the sign-ins to count each submitted form, and what links and other providers have proved. */
export function watchSignIns (signIns: SignIns, meter: Meter): SignIns {
  const succeed = ({ strength }: SignedIn) => meter.signIn('success', strength.amr.join('+') || toMethod('upstream'))
  return {
    ...signIns,
    async submit (secret, attempt, asked) {
      try {
        const outcome = await signIns.submit(secret, attempt, asked)
        if ('done' in outcome) succeed(outcome.done)
        else if ('again' in outcome) meter.signIn('failure', toMethod(outcome.failed))
        return outcome
      } catch (error) {
        meter.signIn(toOutcome(error), toMethod((await signIns.find(secret, asked)).step.kind))
        throw error
      }
    },
    async proceed (secret, proved, asked) {
      const outcome = await signIns.proceed(secret, proved, asked)
      if ('done' in outcome) succeed(outcome.done)
      else if ('again' in outcome) meter.signIn('failure', toMethod(outcome.failed))
      return outcome
    }
  }
}
