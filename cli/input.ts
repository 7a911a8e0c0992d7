import { addAbortSignal } from 'node:stream'
import type { TSchema, Static } from '@sinclair/typebox'
import { Ajv } from 'ajv'
import { LIMITS } from '../schemas/common.ts'
import type { User } from '../schemas/user.ts'
import { paramError } from '../lib/errors.ts'
import { randomText } from '../lib/ids.ts'
import { UsageError } from './args.ts'
import type { Context } from './command.ts'

/** Characters of a password that is made here: 142 bits. */
const GENERATED = 24

/** Bytes of a password on stdin: four for each character, and the end of the line. */
const STDIN = 4 * LIMITS.password + 2

/** Reads a password from stdin: all of it, less the newline at its end. */
async function readPassword ({ stdin, signal }: Pick<Context, 'stdin' | 'signal'>): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of addAbortSignal(signal, stdin)) {
    const bytes = Buffer.from(chunk)
    size += bytes.length
    if (size > STDIN) throw new UsageError('--password-stdin: stdin holds more than a password')
    chunks.push(bytes)
  }
  const password = Buffer.concat(chunks).toString('utf8').replace(/\r?\n$/, '')
  if (/[\r\n]/.test(password)) throw new UsageError('--password-stdin: stdin holds more than one line')
  return password
}

/**
 * The password for a user: from stdin, or made here, which then must be told. Never from the command line, where every
 * user of the machine would see it.
 */
export async function takePassword ({ args, stdin, signal }: Context): Promise<{ password: string, generated: boolean }> {
  if (!args.has('password-stdin')) return { password: randomText(GENERATED), generated: true }
  if (stdin.isTTY === true) throw new UsageError('--password-stdin: stdin is a terminal, which would show it; pipe the password in')
  return { password: await readPassword({ stdin, signal }), generated: false }
}

/** The user whom a flag names by his account. Throws ErrParam. */
export async function requireUser ({ services, args }: Context, flag = 'account'): Promise<User> {
  const user = await services.users.getByAccount(args.required(flag))
  if (user === null) throw paramError(flag, 'no user has this account')
  return user
}

/**
 * Holds input against the schema that HTTP bodies are held against.
 * @throws ErrParam that names the field
 */
export function checkInput<T extends TSchema> (schema: T, input: Static<T>): Static<T> {
  const validate = new Ajv({ strict: true, strictTypes: false }).compile(schema)
  if (validate(input)) return input
  const [error] = validate.errors ?? []
  const [, field = 'input', index] = /^\/data\/(\w+)(\/\d+)?/.exec(error?.instancePath ?? '') ?? []
  throw paramError(index === undefined ? field : `${field}[${index.slice(1)}]`, error?.message ?? 'is not valid')
}
