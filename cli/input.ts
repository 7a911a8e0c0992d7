import { isUtf8 } from 'node:buffer'
import { addAbortSignal } from 'node:stream'
import type { TSchema, Static } from '@sinclair/typebox'
import { Ajv } from 'ajv'
import { LIMITS } from '../schemas/common.ts'
import type { User } from '../schemas/user.ts'
import { paramError } from '../lib/errors.ts'
import { randomText } from '../lib/ids.ts'
import type { Roles } from '../lib/roles.ts'
import { GENERATED_PASSWORD } from '../lib/users/password-rules.ts'
import { type Args, UsageError } from './args.ts'
import { OPERATOR, type Context } from './command.ts'

/** Bytes of a password on stdin: four for each character, and the line ending. */
const STDIN = 4 * LIMITS.password + 2

/**
 * Reads one line of stdin, and nothing after it, without the final newline.
 * @param flag what asks for it, for messages
 * @param what what it is, such as `password`
 */
export async function readLine ({ stdin, signal }: Pick<Context, 'stdin' | 'signal'>, flag: string, what: string): Promise<string> {
  if (stdin.isTTY === true) throw new UsageError(`${flag}: stdin is a terminal, which would show the ${what}; pipe it in`)
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of addAbortSignal(signal, stdin)) {
    const bytes = Buffer.from(chunk)
    size += bytes.length
    if (size > STDIN) throw new UsageError(`${flag}: stdin has more than a ${what}`)
    chunks.push(bytes)
  }
  const input = Buffer.concat(chunks)
  if (!isUtf8(input)) throw new UsageError(`${flag}: stdin must be UTF-8`)
  const line = input.toString().replace(/\r?\n$/, '')
  if (/[\r\n]/.test(line)) throw new UsageError(`${flag}: stdin has more than one line`)
  return line
}

export interface Password { password: string, generated: boolean }

/**
 * Reads a user's password from stdin, or generates one, which the caller must then print. It is never a flag: every user of the
 * machine can see the command line.
 */
export async function takePassword ({ args, stdin, signal }: Context): Promise<Password> {
  if (!args.has('password-stdin')) return { password: randomText(GENERATED_PASSWORD), generated: true }
  return { password: await readLine({ stdin, signal }, '--password-stdin', 'password'), generated: false }
}

/** The roles of the flag `role`. */
export const readRoles = (args: Args): Roles => Object.fromEntries(args.all('role').map((role) => [role, true]))

/** The user whose account the flag names. Throws ErrParam. */
export async function requireUser ({ services, args }: Context, flag = 'account'): Promise<User> {
  const user = await services.users.getByAccount(args.required(flag))
  if (user === null) throw paramError(flag.replaceAll('-', '_'), 'no user has this account')
  return user
}

/** Characters of an id that a narrow table shows. */
const SHORT_ID = 8

/** The id of the client that the flag names, also by its end. Throws ErrParam when several clients have this end. */
export async function readClientId ({ services: { clients }, args }: Context): Promise<string> {
  const given = args.required('client').replace(/^…/, '')
  if (given.length !== SHORT_ID) return given
  const found: string[] = []
  for await (const batch of clients.list({ limit: 0 }, OPERATOR)) {
    found.push(...batch.map(({ clientId }) => clientId).filter((clientId) => clientId.endsWith(given)))
    if (found.includes(given)) return given
  }
  if (found.length > 1) throw paramError('client', 'is the end of several ids')
  return found[0] ?? given
}

/**
 * Validates input with the schema of the HTTP body.
 * @throws UsageError that names the field
 */
export function checkInput<T extends TSchema> (schema: T, input: Static<T>): Static<T> {
  const validate = new Ajv({ strict: true, strictTypes: false }).compile(schema)
  if (validate(input)) return input
  const [error] = validate.errors ?? []
  const [, field = 'input', index] = /^\/data\/(\w+)(\/\d+)?/.exec(error?.instancePath ?? '') ?? []
  throw new UsageError(`${index === undefined ? field : `${field}[${index.slice(1)}]`}: ${error?.message ?? 'is not valid'}`)
}
