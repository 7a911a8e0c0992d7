import { parseArgs } from 'node:util'
import { findNearest } from '../lib/nearest.ts'

/** The command line is wrong. The message names the flag, never a value: that may be a misplaced password. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** A flag of a command. */
export interface Flag {
  type: 'string' | 'boolean'
  /** Placeholder for the value in the help: ACCOUNT. */
  value?: string
  /** May be repeated. */
  multiple?: true
  required?: true
  /** Its value may also stand alone, without the flag. */
  operand?: true
  text: string
}

export const toggle = (text: string): Flag => ({ type: 'boolean', text })
export const value = (value: string, text: string): Flag => ({ type: 'string', value, text })
export const required = (name: string, text: string): Flag => ({ ...value(name, text), required: true })
export const repeated = (name: string, text: string, more = ''): Flag =>
  ({ ...value(name, `${text}; may be repeated. ${more}`.trim()), multiple: true })

/** Flags that every command has. */
export const COMMON: Record<string, Flag> = {
  json: toggle('Print JSON and nothing else: one object, or one a line where the output is a stream.'),
  help: toggle('Show the flags of a command.')
}

type Value = string | boolean | (string | boolean)[] | undefined

/** Parsed flags. */
export class Args {
  readonly #values: Record<string, Value>

  constructor (values: Record<string, Value>) {
    this.#values = values
  }

  has (name: string): boolean {
    return this.#values[name] === true
  }

  optional (name: string): string | undefined {
    const value = this.#values[name]
    return typeof value === 'string' ? value : undefined
  }

  required (name: string): string {
    const value = this.optional(name)
    if (value === undefined) throw new UsageError(`--${name}: is required`)
    return value
  }

  /** A maximum number of records; 0 means all. */
  limit (fallback = 0): number {
    return this.integer('limit', { minimum: 0, maximum: Number.MAX_SAFE_INTEGER }) ?? fallback
  }

  /** @throws UsageError unless exactly one of the two flags is given */
  requireOne (name: string, other: string): void {
    const isGiven = [name, other].map((flag) => this.#values[flag] !== undefined)
    if (isGiven[0] === isGiven[1]) throw new UsageError(`--${name}: is required, or --${other}`)
  }

  /** @throws UsageError when both flags are given */
  refuseBoth (name: string, other: string): void {
    if (this.has(name) && this.has(other)) throw new UsageError(`--${other}: cannot be combined with --${name}`)
  }

  /** All values of a repeatable flag. */
  all (name: string): string[] {
    return ([this.#values[name] ?? []].flat()).filter((value) => typeof value === 'string')
  }

  integer (name: string, { minimum, maximum }: { minimum: number, maximum: number }): number | undefined {
    const text = this.optional(name)
    if (text === undefined) return undefined
    const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN
    if (!(value >= minimum && value <= maximum)) throw new UsageError(`--${name}: must be an integer from ${minimum} to ${maximum}`)
    return value
  }
}

function unknownFlag (name: string, flags: string[]): UsageError {
  const meant = flags.find((flag) => flag.startsWith(name)) ?? findNearest(name, flags)
  return new UsageError(`--${name.slice(0, 64)}: is not a flag of this command${meant === undefined ? '' : `, did you mean --${meant}?`}`)
}

/**
 * Reads the flags of a command.
 * @throws UsageError that names the flag
 */
export function parseFlags (own: Record<string, Flag>, argv: string[]): Args {
  const flags: Record<string, Flag> = { ...COMMON, ...own }
  const options = Object.fromEntries(Object.entries(flags).map(([name, { type, multiple }]) => [name, { type, multiple: multiple === true }]))
  // Not strict: the parser's own messages would repeat what was typed.
  const { values, tokens } = parseArgs({ args: argv, options, strict: false, tokens: true })
  const seen = new Set<string>()
  const operand = Object.keys(flags).find((name) => flags[name]!.operand === true)
  for (const given of tokens) {
    const isOperand = given.kind === 'positional' && operand !== undefined
    if (isOperand) values[operand] = given.value
    const token = isOperand ? { kind: 'option' as const, name: operand, value: given.value, inlineValue: true } : given
    if (token.kind !== 'option') throw new UsageError('an argument without a flag: every value follows its flag')
    const flag = flags[token.name]
    if (flag === undefined) throw unknownFlag(token.name, Object.keys(flags))
    const { name, value, inlineValue } = token
    if (flag.type === 'boolean' && value !== undefined) throw new UsageError(`--${name}: takes no value`)
    if (flag.type === 'string' && (value === undefined || (value.startsWith('--') && inlineValue !== true))) {
      throw new UsageError(`--${name}: needs a value; one that begins with dashes is written --${name}=VALUE`)
    }
    // Node replaces bytes that are not UTF-8 with it.
    if (value?.includes('\ufffd') === true) throw new UsageError(`--${name}: must be UTF-8`)
    if (seen.has(name) && flag.multiple !== true) throw new UsageError(`--${name}: is given twice`)
    seen.add(name)
  }
  const missing = Object.entries(flags).find(([name, flag]) => flag.required === true && !seen.has(name))
  if (missing !== undefined && values.help !== true) throw new UsageError(`--${missing[0]}: is required`)
  return new Args(values)
}
