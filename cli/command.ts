import type { Readable, Writable } from 'node:stream'
import type { Config } from '../config.ts'
import type { Services } from '../lib/identity.ts'
import type { Actor } from '../lib/roles.ts'
import { type Args, type Flag, subject, toggle } from './args.ts'
import type { Look } from './look.ts'

/** What a command prints when it has ended; `note` is left out of JSON. */
export type Result = object | [record: object, note: string | undefined]

/** A command's standard streams. */
export interface Streams {
  stdin: Readable & { isTTY?: boolean }
  stdout: Writable & { isTTY?: boolean, columns?: number }
  stderr: Writable & { isTTY?: boolean, columns?: number }
}

/** The parameters of every command. */
export interface Surroundings extends Streams {
  args: Args
  /** Print one JSON object and nothing else. */
  json: boolean
  /** What the terminal of stdout can show. */
  look: Look
  /** Aborted by Ctrl-C and SIGTERM. */
  signal: AbortSignal
}

/** The parameters of a command that uses the store. */
export interface Context extends Surroundings {
  services: Services
  config: Config
}

/**
 * A command: its help, its flags and one function, whose result is printed. The first sentence of `summary` also stands in the list of all
 * commands. `example` is what one types after the name of the program.
 */
export type Command = { summary: string, example: string, flags: Record<string, Flag> } & (
  | {
    run (context: Context): Promise<Result | void>
    /**
     * Whether it creates a missing database. Absent: except in production. A command that only reads never does, nor does it make a key.
     * One that never does migrates no database of an earlier release either.
     */
    creates?: boolean | ((args: Args) => boolean | undefined)
  }
  /** For a command that reads the configuration, and opens the database itself or not at all. */
  | { runConfigured (surroundings: Surroundings, config: Config): Promise<Result | void> }
  /** For a command that needs neither the store nor the whole configuration. */
  | { runAlone (surroundings: Surroundings, env: NodeJS.ProcessEnv): Promise<Result | void> }
)

/** Commands by name; a name may have two words. */
export type Commands = Record<string, Command>

/** The command line acts as an admin, because access to the store is full power anyway. */
export const OPERATOR: Actor = { user_id: '', isAdmin: true }

/** The flag of commands about one user. */
export const ACCOUNT = subject('ACCOUNT', 'The account.')

/** The flag of commands about one client, see `readClientId`. */
export const CLIENT = subject('ID', 'The client: its id, or the eight characters at its end that a table shows.')

/** The flag of commands that ask before what cannot be undone, see `confirm`. */
export const YES: Flag = toggle('Do not ask first. Only a terminal asks.')

/** The flag of commands that may take the last administrator away. */
export const FORCE: Flag = toggle('Even if no administrator remains.')

export const toOperator = (args: Args): Actor => ({ ...OPERATOR, isForced: args.has('force') })
