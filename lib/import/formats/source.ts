import { ACCOUNT, EMAIL } from '../../checks.ts'
import type { ImportLine } from '../../../schemas/import.ts'
import { naming } from '../refused.ts'
import { defined } from '../../defined.ts'

/** Why a person cannot be imported. */
export class Refusal extends Error {
  readonly field: string | undefined

  constructor (reason: string, field?: string) {
    super(reason)
    this.field = field
  }
}

/** What a reader of a format is told besides the file. */
export interface FormatOptions {
  /** The name under which the ids of the other system are kept. */
  source: string
  /** Whether a person may lose a second factor that cannot be taken over. */
  withoutFactors: boolean
  /** The issuers of identities, by the names that the file has for them. */
  issuers: Readonly<Record<string, string>>
  /** Firebase's parameters of password hashes. */
  hashConfig?: HashConfig | undefined
}

/** The parameters of a Firebase project's password hashes. */
export interface HashConfig {
  signer_key: string
  salt_separator: string
  rounds: number
  memory_cost: number
}

/** Issuers of providers that name the same person by the same subject to every client, by the names that exports have for them. */
const ISSUERS: Readonly<Record<string, string>> = {
  google: 'https://accounts.google.com',
  'google.com': 'https://accounts.google.com',
  'google-oauth2': 'https://accounts.google.com'
}

type Json = Record<string, unknown>

export const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether a field says nothing, so that nothing is lost without it. */
function isEmpty (value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === false || value === 0) return true
  return typeof value === 'object' && Object.keys(value).length === 0
}

const TRUE: readonly unknown[] = [true, 1, 'true', 't', '1', 'TRUE', 'True']
const FALSE: readonly unknown[] = [false, 0, 'false', 'f', '0', 'FALSE', 'False']

/** A time as JSON and databases write it: day, clock and offset. */
const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d:\d\d(?:\.\d+)?))? ?(Z|[+-]\d\d(?::?\d\d)?)?$/

/** The most names of fields that were left out, and the most characters of the name of a field. */
const DROPPED = { count: 50, length: 64 }

/** A name of a field as it is reported: the file has chosen it. */
export const toShort = (name: string): string => name.slice(0, DROPPED.length).toWellFormed()

/** A record of another system, from which a reader takes fields. What has been left there at the end is reported. */
export class Source {
  readonly options: FormatOptions
  readonly #record: Json
  readonly #rest: Set<string>
  readonly #dropped: string[] = []
  readonly #inner: Source[] = []

  constructor (record: Json, options: FormatOptions) {
    this.options = options
    this.#record = record
    this.#rest = new Set(Object.keys(record))
  }

  /** An object within this record, whose fields are reported with those of the record. */
  within (record: Json): Source {
    const inner = new Source(record, this.options)
    this.#inner.push(inner)
    return inner
  }

  get names (): string[] {
    return Object.keys(this.#record)
  }

  /** Takes a field as it is; null and empty texts count as absent. */
  take (name: string): unknown {
    this.#rest.delete(name)
    const value = Object.hasOwn(this.#record, name) ? this.#record[name] : undefined
    return value === null || value === '' ? undefined : value
  }

  /** @throws Refusal when it is not a text */
  text (name: string): string | undefined {
    const value = this.take(name)
    if (value === undefined || typeof value === 'string') return value
    throw new Refusal('must be a text', name)
  }

  /** A text, or a number as one: ids are either. */
  id (name: string): string | undefined {
    const value = this.take(name)
    if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
    if (value === undefined || typeof value === 'string') return value
    throw new Refusal('must be a text or an integer', name)
  }

  /** Databases and CSV have other words for true and false than JSON. */
  flag (name: string): boolean | undefined {
    const value = this.take(name)
    if (value === undefined) return undefined
    if (TRUE.includes(value)) return true
    if (FALSE.includes(value)) return false
    throw new Refusal('must be true or false', name)
  }

  /** An object, which may be JSON in a text. */
  object (name: string): Json | undefined {
    const value = this.json(name)
    if (value === undefined || isObject(value)) return value
    throw new Refusal('must be an object', name)
  }

  /** A list of objects, which may be JSON in a text. */
  list (name: string): Json[] {
    const value = this.json(name) ?? []
    if (Array.isArray(value) && value.every(isObject)) return value
    throw new Refusal('must be a list of objects', name)
  }

  /** A time as text or as milliseconds, in RFC 3339. */
  time (name: string): string | undefined {
    const value = this.take(name)
    if (value === undefined) return undefined
    const text = String(value)
    // A database writes a space, and no minutes of the offset. Without an offset it is UTC.
    const [, day, clock = '00:00:00', offset = 'Z'] = TIME.exec(text) ?? []
    const zone = /^[+-]\d\d$/.test(offset) ? `${offset}:00` : offset
    const time = new Date(/^\d{1,15}$/.test(text) ? Number(text) : `${day}T${clock}${zone}`)
    if (Number.isNaN(time.getTime())) throw new Refusal('must be a time', name)
    return time.toISOString()
  }

  /** A value that may be JSON in a text. */
  json (name: string): unknown {
    const value = this.take(name)
    if (typeof value !== 'string') return value
    try {
      return JSON.parse(value) as unknown
    } catch {
      // The message would repeat a part of the text.
      throw new Refusal('is not valid JSON', name)
    }
  }

  /** These say nothing about the person. */
  ignore (...names: string[]): void {
    for (const name of names) this.#rest.delete(name)
  }

  drop (name: string): void {
    if (!this.#dropped.includes(name)) this.#dropped.push(name)
  }

  /** The person has a second factor that stays behind. @throws Refusal unless that is wanted */
  loseFactor (name: string, problem = 'is a 2FA method that cannot be taken over'): void {
    if (this.options.withoutFactors) this.drop(name)
    else throw new Refusal(`${problem}; ${naming('without-factors')} brings the person in without it`, name)
  }

  /**
   * The identity at another provider.
   * @param provider its name in the file
   * @param known names that mean the same in every file of the format
   */
  identity (provider: string, subject: unknown, known: Readonly<Record<string, string>> = ISSUERS): { issuer: string, subject: string }[] {
    const issuer = [this.options.issuers, known].find((names) => Object.hasOwn(names, provider))?.[provider]
    if (issuer !== undefined && (typeof subject === 'string' || typeof subject === 'number')) return [{ issuer, subject: String(subject) }]
    this.drop(`identities.${provider}`)
    return []
  }

  /** The names of fields that had something to say and have no place. */
  get dropped (): string[] {
    const rest = [...this.#rest].filter((name) => !isEmpty(this.#record[name]))
    const all = [...this.#dropped, ...rest, ...this.#inner.flatMap((inner) => inner.dropped)]
    return all.slice(0, DROPPED.count).map(toShort)
  }
}

/** The names by which a person signs in elsewhere. */
interface Names {
  username?: string | undefined
  email?: string | undefined
  /** Whether the address is verified. It says nothing about a user name that looks like an address. */
  verified?: boolean | undefined
  prefer: 'username' | 'email'
}

const isAccount = (name: string | undefined): boolean => name !== undefined && (ACCOUNT.test(name) || EMAIL.test(name))

/** The first of the names that an account can have, and the address with its proof. @throws Refusal */
export function toAccount (source: Source, { username, email, verified, prefer }: Names): Pick<ImportLine, 'account' | 'email' | 'email_verified'> {
  const candidates = prefer === 'email' ? [email, username] : [username, email]
  const account = candidates.find(isAccount) ?? candidates.find((name) => name !== undefined)
  if (account === undefined) throw new Refusal('there is neither an email address nor a user name', 'account')
  if (username !== undefined && username !== account && username !== email) source.drop('username')
  return { account, ...(email !== undefined && defined({ email, email_verified: verified })) }
}

/** A name of the parts that are not absent. */
export function joinName (...parts: (string | undefined)[]): { name?: string } {
  const name = parts.filter((part) => part !== undefined).join(' ').trim()
  return name === '' ? {} : { name }
}

/** Leaves undefined members out. */
export function compact<T extends object> (value: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T
}
