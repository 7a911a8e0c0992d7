import { ACRS, type Acr } from '../lib/proofs.ts'
import { LIMITS } from '../schemas/common.ts'
import type { GuardOptions } from './admission.ts'

/** What a reverse proxy demands of the requests that it asks about. */
export interface ForwardRule {
  guard: GuardOptions
  /** Whether a 401 also asks for a user name and a password (RFC 7617), which then is a token. */
  basic: boolean
}

/** A rule that cannot be followed. The message is for the log: it names the parameter, and repeats no value. */
export class RuleError extends Error {
  override readonly name = 'RuleError'
}

/** Characters of a rule: a resource, some scopes, and the rest. */
const MAX_RULE = 4096

/** RFC 6749, 3.3. Challenges repeat scopes, so nothing else may be in one. */
const SCOPES = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/

/** No control character, and no U+FFFD, which a wrong percent-encoding leaves. */
const TEXT = /^[^\p{Cc}\ufffd]+$/u

/** The name of a parameter that may be in a log: short, so that nobody's token is. */
const LOGGED_NAME = /^[\w-]{1,24}$/

const SUBJECTS = ['user', 'client', 'any'] as const

function choose<T extends string> (name: string, value: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value)
  if (found === undefined) throw new RuleError(`${name}: must be ${choices.join(', ')}`)
  return found
}

function requireText (name: string, value: string): string {
  if (!TEXT.test(value)) throw new RuleError(`${name}: must be a text`)
  return value
}

/** What each parameter adds to a rule. */
const PARAMETERS: Record<string, (value: string) => GuardOptions> = {
  resource (value) {
    if (value.length > LIMITS.uri || !URL.canParse(value)) throw new RuleError('resource: must be the URI of a resource')
    return { audience: requireText('resource', value) }
  },
  scope (value) {
    if (!SCOPES.test(value)) throw new RuleError('scope: must be scopes with a space between them')
    return { scopes: value.split(' ') }
  },
  role: (value) => ({ roles: [requireText('role', value)] }),
  acr: (value) => ({ acr: choose<Acr>('acr', value, ACRS) }),
  subject: (value) => ({ subject: choose('subject', value, SUBJECTS) })
}

/**
 * Reads the rule of a proxy, as the query of a URL has it: `resource=URI&scope=SCOPE SCOPE&role=ROLE`. All that it names is demanded.
 * @throws RuleError for an unknown parameter, one that is given twice or has no such value, and where none demands anything
 */
export function parseRule (text: string): ForwardRule {
  if (text.length > MAX_RULE) throw new RuleError(`the rule has more than ${MAX_RULE} characters`)
  const given = [...new URLSearchParams(`?${text}`)]
  const guard: GuardOptions = {}
  let basic = false
  for (const [index, [name, value]] of given.entries()) {
    if (given.findIndex(([other]) => other === name) < index) throw new RuleError(`${LOGGED_NAME.test(name) ? name : 'a parameter'}: is given twice`)
    if (name === 'basic') basic = choose('basic', value, ['true']) === 'true'
    else if (Object.hasOwn(PARAMETERS, name)) Object.assign(guard, PARAMETERS[name]?.(value))
    else throw new RuleError(`${LOGGED_NAME.test(name) ? name : 'a parameter'}: is not known`)
  }
  if (Object.keys(guard).length === 0) throw new RuleError('there is no rule')
  return { guard, basic }
}
