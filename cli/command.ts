import type { Readable, Writable } from 'node:stream'
import type { Services } from '../lib/identity.ts'
import type { Actor } from '../lib/roles.ts'
import type { Args, Flag } from './args.ts'

/** Where a command reads and writes; a test hands in its own. */
export interface Streams {
  stdin: Readable & { isTTY?: boolean }
  stdout: Writable & { isTTY?: boolean }
  stderr: Writable & { isTTY?: boolean }
}

/** What every command works with. */
export interface Surroundings extends Streams {
  args: Args
  /** Print one JSON object and nothing else. */
  json: boolean
  /** Aborted by Ctrl-C and SIGTERM: clean up and leave. */
  signal: AbortSignal
}

/** What a command works with that uses the store. */
export interface Context extends Surroundings {
  services: Services
}

/** A command: data for the parser and the help, and one function. */
export type Command = { summary: string, flags: Record<string, Flag> } & (
  | { run (context: Context): Promise<void> }
  /** One that needs neither the store nor a configuration. */
  | { runAlone (surroundings: Surroundings): Promise<void> }
)

/** By the words that call them. */
export type Commands = Record<string, Command>

/** On whose behalf the command line acts: whoever can open the store may do anything. */
export const OPERATOR: Actor = { user_id: '', isAdmin: true }
