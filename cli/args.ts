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
  /** What the command is about: its value may also stand alone, without the flag. One flag of a command at most. */
  operand?: true
  /** Another flag of the command: exactly one of the two is required. */
  or?: string
  /** Its only values. */
  choices?: readonly string[]
  text: string
}

export const toggle = (text: string): Flag => ({ type: 'boolean', text })
export const value = (value: string, text: string): Flag => ({ type: 'string', value, text })
export const required = (name: string, text: string): Flag => ({ ...value(name, text), required: true })
/** What the command is about: `user show ACCOUNT` or `user show --account ACCOUNT`. */
export const subject = (name: string, text: string): Flag => ({ ...required(name, text), operand: true })
export const choice = (name: string, choices: readonly string[], text: string): Flag => ({ ...value(name, text), choices })
export const repeated = (name: string, text: string, more = ''): Flag =>
  ({ ...value(name, `${text}; may be repeated. ${more}`.trim()), multiple: true })

/** Flags that every command has. */
export const COMMON: Record<string, Flag> = {
  json: toggle('Print JSON and nothing else: one object, or one a line where the output is a stream.'),
  help: toggle('Show the flags of a command.')
}

type Value = string | boolean | (string | boolean)[] | undefined

/** How a message calls a flag: as it was typed, and what stands without its flag by its placeholder. */
export function nameFlag (name: string, flag: Flag | undefined, isTyped = false): string {
  return flag?.operand === true && !isTyped ? flag.value ?? name : `--${name}`
}

/** Parsed flags. */
export class Args {
  readonly #values: Record<string, Value>
  /** The flags that were typed, by name: operands are not among them. */
  readonly typed: ReadonlySet<string>

  constructor (values: Record<string, Value>, typed: ReadonlySet<string> = new Set(Object.keys(values))) {
    this.#values = values
    this.typed = typed
  }

  /** Whether it has a value, with or without its flag. */
  isGiven (name: string): boolean {
    return this.#values[name] !== undefined
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

/** The error of an argument that belongs to no flag. */
const straightArgument = (): UsageError => new UsageError('an argument without a flag: every value follows its flag')

/** @throws UsageError that says what is wrong with the value of a flag */
function checkValue (label: string, { type, choices }: Flag, value: string | undefined, isInline: boolean): void {
  if (type === 'boolean' && value !== undefined) throw new UsageError(`${label}: takes no value`)
  if (type === 'string' && (value === undefined || (value.startsWith('--') && !isInline))) {
    throw new UsageError(`${label}: needs a value; one that begins with dashes is written ${label}=VALUE`)
  }
  // Node replaces bytes that are not UTF-8 with it.
  if (value?.includes('\ufffd') === true) throw new UsageError(`${label}: must be UTF-8`)
  if (choices !== undefined && value !== undefined && !choices.includes(value)) {
    throw new UsageError(`${label}: must be ${choices.length === 2 ? choices.join(' or ') : `one of ${choices.join(', ')}`}`)
  }
}

/** @throws UsageError that names what is missing, or given beside what excludes it */
function checkPresence (flags: Record<string, Flag>, given: ReadonlySet<string>): void {
  for (const [name, flag] of Object.entries(flags)) {
    const label = nameFlag(name, flag)
    if (flag.required === true && !given.has(name)) throw new UsageError(`${label}: is required`)
    const { or: other } = flag
    if (other === undefined) continue
    const otherLabel = nameFlag(other, flags[other])
    if (given.has(name) && given.has(other)) throw new UsageError(`${label}: cannot be combined with ${otherLabel}`)
    if (!given.has(name) && !given.has(other)) throw new UsageError(`${label}: is required, or ${otherLabel}`)
  }
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
  const [given, typed] = [new Set<string>(), new Set<string>()]
  const operand = Object.keys(flags).find((name) => flags[name]?.operand === true)
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue
    const isOperand = token.kind === 'positional'
    const name = isOperand ? operand : token.name
    if (name === undefined) throw straightArgument()
    const flag = flags[name]
    if (flag === undefined) throw unknownFlag(name, Object.keys(flags))
    const label = nameFlag(name, flag, !isOperand)
    checkValue(label, flag, token.value, isOperand || token.inlineValue === true)
    if (given.has(name) && flag.multiple !== true) throw new UsageError(`${label}: is given twice`)
    given.add(name)
    if (isOperand) values[name] = token.value
    else typed.add(name)
  }
  if (values.help !== true) checkPresence(flags, given)
  return new Args(values, typed)
}
