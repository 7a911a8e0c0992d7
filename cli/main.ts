import { type Config, readConfig } from '../config.ts'
import { IdentityError } from '../lib/errors.ts'
import { explainFailure } from '../lib/failure.ts'
import { openServices } from '../lib/identity.ts'
import { createMailLook } from '../lib/mail/look.ts'
import { readOwnTexts } from '../lib/mail/texts/own-texts.ts'
import { createLanguages } from '../lib/pages/texts/language.ts'
import { createSmtp } from '../lib/mail/smtp.ts'
import { findNearest } from '../lib/nearest.ts'
import { readVersion } from '../lib/version.ts'
import { type Args, UsageError, nameFlag, parseFlags } from './args.ts'
import { answerCommands } from './answers.ts'
import { backupCommands } from './backup.ts'
import { bootstrapCommands } from './bootstrap.ts'
import { clientCommands } from './client.ts'
import { clientKeyCommands } from './client-key.ts'
import { clientSecretCommands } from './client-secret.ts'
import { clientTokenCommands } from './client-token.ts'
import type { Command, Commands, Streams, Surroundings, Result } from './command.ts'
import { compactCommands } from './compact.ts'
import { toCompletion } from './completion.ts'
import { configCommands } from './config-check.ts'
import { doctorCommands } from './doctor.ts'
import { documentCommands } from './document.ts'
import { eventCommands } from './event.ts'
import { nameFile } from './file-error.ts'
import { factorCommands } from './factors.ts'
import { identityCommands } from './identities.ts'
import { helpAll, helpGroup, helpOne, listGroup } from './help.ts'
import { importCommands } from './import.ts'
import { keysCommands } from './keys.ts'
import { loginCommands } from './login.ts'
import { logoutCommands } from './logout.ts'
import { findLook, type Look, wrap } from './look.ts'
import { mailCommands } from './mail.ts'
import { manageUserCommands } from './manage-user.ts'
import { serveCommands } from './process/serve.ts'
import { moveCommands } from './move.ts'
import { printResult } from './output.ts'
import { resourceCommands } from './resource.ts'
import { findServiceUrl } from './service-url.ts'
import { sessionsCommands } from './sessions.ts'
import { statusCommands } from './status.ts'
import { testingCommands } from './testing.ts'
import { textCommands } from './texts.ts'
import { tokenCommands } from './token.ts'
import { userDataCommands } from './user-data.ts'
import { userExportCommands } from './user-export.ts'
import { userHelpCommands } from './user-help.ts'
import { userTokenCommands } from './user-token.ts'
import { upstreamCommands } from './upstream.ts'
import { userCommands } from './user.ts'
import { webhookCommands } from './webhook.ts'
import { CALL } from './welcome.ts'
import { workCommands } from './work.ts'

/** How messages on stderr begin. */
const PROGRAM = 'fastify-identity:'

export const COMMANDS: Commands = {
  ...bootstrapCommands,
  ...tokenCommands,
  ...answerCommands,
  ...userCommands,
  ...factorCommands,
  ...userHelpCommands,
  ...userTokenCommands,
  ...identityCommands,
  ...userDataCommands,
  ...userExportCommands,
  ...importCommands,
  ...manageUserCommands,
  ...clientCommands,
  ...clientSecretCommands,
  ...clientTokenCommands,
  ...clientKeyCommands,
  ...documentCommands,
  ...resourceCommands,
  ...sessionsCommands,
  ...eventCommands,
  ...webhookCommands,
  ...upstreamCommands,
  ...mailCommands,
  ...textCommands,
  ...logoutCommands,
  ...workCommands,
  ...statusCommands,
  ...keysCommands,
  ...backupCommands,
  ...compactCommands,
  ...doctorCommands,
  ...moveCommands,
  ...configCommands,
  ...loginCommands,
  ...serveCommands,
  ...testingCommands,
  ...toCompletion(() => COMMANDS)
}

/** The words that begin the names of several commands, if nothing but flags follows them: `client secret`. */
function findGroup (words: string[]): string | undefined {
  const end = words.findIndex((word) => word.startsWith('-'))
  const group = words.slice(0, end < 0 ? undefined : end).join(' ')
  return !Object.hasOwn(COMMANDS, group) && listGroup(COMMANDS, group).length > 0 ? group : undefined
}

/** Finds the command and its flags. Flags may also come before the command. */
function findCommand (argv: string[]): { name: string, command: Command, flags: string[] } {
  const start = argv.findIndex((word) => !word.startsWith('-'))
  const words = start < 0 ? [] : argv.slice(start)
  for (const length of [3, 2, 1]) {
    const name = words.slice(0, length).join(' ')
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
    if (command !== undefined) return { name, command, flags: [...argv.slice(0, start), ...words.slice(length)] }
  }
  const names = Object.keys(COMMANDS)
  if (findGroup(words) !== undefined) throw new UsageError('only the beginning of several commands')
  const typed = words.slice(0, words[1]?.startsWith('-') === false ? 2 : 1).join(' ')
  const meant = findNearest(typed, names) ?? names.find((name) => name.startsWith(`${words[0]} `))
  throw new UsageError(words.length === 0
    ? 'no command is given'
    : `not a command${meant === undefined ? '' : `, did you mean ${meant}?`}`)
}

/** The text for help and version; undefined for a command. */
function findText (argv: string[], look: Look): string | undefined {
  const [first, ...rest] = argv
  if (first === undefined || first === '--help' || first === '-h') return helpAll(COMMANDS, look)
  if (first === '--version' || first === '-v') return `${readVersion()}\n`
  const asked = first === 'help' ? rest : argv
  const group = first === 'help' || argv.some((word) => word === '--help' || word === '-h') ? findGroup(asked) : undefined
  if (group !== undefined) return helpGroup(COMMANDS, group)
  if (first !== 'help') return
  if (rest.length === 0) return helpAll(COMMANDS, look)
  const { name, command } = findCommand(rest)
  return helpOne(name, command, COMMANDS, look)
}

/** Replaces the name of an API field at the start of a message with the argument that it came from, as it was typed. */
function explain (error: unknown, command: Command | undefined, args: Args | undefined): string {
  const text = error instanceof IdentityError && error.statusCode < 500 ? error.message : explainFailure(error)
  const flags = command?.flags ?? {}
  const label = (flag: string): string => {
    const value = args?.optional(flag)
    if (flags[flag]?.value === 'FILE' && value !== undefined) return nameFile(value)
    return nameFlag(flag, flags[flag], args?.typed.has(flag))
  }
  const [typed = '', own] = /^--([\w-]+)/.exec(text) ?? []
  if (own !== undefined && args !== undefined) {
    // What is wrong with a command line is the flag, and not the file.
    return (error instanceof UsageError ? nameFlag(own, flags[own], args.typed.has(own)) : label(own)) + text.slice(typed.length)
  }
  const [, field = '', index = ''] = /^(\w+)(\[\d+\]|\.\S+?)?: /.exec(text) ?? []
  if (field === '') return text
  const name = field.replaceAll('_', '-').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  const given = Object.keys(flags).filter((one) => args?.isGiven(one) === true)
  const flag = Object.hasOwn(flags, name) ? name : given.find((one) => one.startsWith(name) || name.startsWith(one))
  return flag === undefined ? text : `${label(flag)}${index}${text.slice(field.length + index.length)}`
}

/** The settings of commands that mail people. */
function toAccounts (config: Config): NonNullable<Parameters<typeof openServices>[0]['accounts']> {
  const { oidc, people: { mail, ...people } } = config
  return {
    ...people,
    ...(mail && { mail: createSmtp(mail.url, mail.from) }),
    ...(oidc !== false && { getMailLook: () => createMailLook(oidc, mail?.logo), getIssuer: () => new URL(findServiceUrl(config)), serviceName: oidc.name })
  }
}

async function run (command: Command, surroundings: Surroundings, env: NodeJS.ProcessEnv): Promise<void> {
  const print = (result: Result | void) => { if (result) printResult(surroundings, result) }
  if ('runAlone' in command) return print(await command.runAlone(surroundings, env))
  const config = readConfig(env)
  const { services: options, oidc, warnings } = config
  const onWarning = (message: string) => { surroundings.stderr.write(`fastify-identity: warning: ${message}\n`) }
  warnings.forEach(onWarning)
  if ('runConfigured' in command) return print(await command.runConfigured(surroundings, config))
  const creates = typeof command.creates === 'function' ? command.creates(surroundings.args) : command.creates
  const services = await openServices({
    ...options,
    via: 'cli',
    onWarning,
    createDatabase: creates ?? options.createDatabase,
    // It would stop the processes of the earlier release, and nobody has asked for that.
    migrates: creates !== false,
    ...(oidc !== false && { refreshTtl: oidc.refreshTtl, issuer: oidc.issuer, serviceName: oidc.name, documentHosts: oidc.documents?.hosts }),
    getLanguages: () => createLanguages(oidc === false || oidc.texts === undefined ? {} : readOwnTexts(oidc.texts).own),
    accounts: toAccounts(config)
  })
  try {
    print(await command.run({ ...surroundings, services, config }))
    // Without a service nobody else would, and a record carries only so many events.
    if (creates !== false) {
      await services.events.flush().catch(() => onWarning('the events of the change are published when a service runs'))
    }
    // Those that were asked for, and those about the change.
    await services.accounts.outbox?.settle()
  } finally {
    await services.close()
  }
}

/** Exit codes. A signal has its own, see `run`. */
const [DONE, REFUSED, WRONG_USAGE] = [0, 1, 2]

/** Prints an error: what is wrong, and with a wrong command line how it is right. */
function printError (stderr: Streams['stderr'], { width, paint }: Look, text: string, hint: string | undefined): void {
  const lines = [...text.split('\n').map((line) => [paint('red', PROGRAM), line]), ...(hint === undefined ? [] : [[PROGRAM, hint]])]
  for (const [program = '', line = ''] of lines) {
    stderr.write(`${program} ${width === undefined ? line : wrap(line, { width, indent: 2, start: PROGRAM.length + 1 })}\n`)
  }
}

/**
 * Runs a command.
 * @param argv the words and flags, without the program
 * @param signal aborted when the command must clean up and end
 * @returns the exit code: 0 done, 1 refused or failed, 2 a wrong command line, before which nothing was done
 */
export async function runCommandLine (argv: string[], env: NodeJS.ProcessEnv, streams: Streams, signal: AbortSignal): Promise<number> {
  const { stdin, stdout, stderr } = streams
  const look = findLook(stdout, env)
  // A closed pipe is reported by the next write.
  stdout.on('error', () => {})
  let found: ReturnType<typeof findCommand> | undefined
  let args: Args | undefined
  try {
    const text = findText(argv, look)
    if (text !== undefined) {
      stdout.write(text)
      return DONE
    }
    found = findCommand(argv)
    args = parseFlags(found.command.flags, found.flags)
    if (args.has('help')) {
      stdout.write(helpOne(found.name, found.command, COMMANDS, look))
      return DONE
    }
    await run(found.command, { args, json: args.has('json'), look, stdin, stdout, stderr, signal }, env)
    return DONE
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // The user stopped the command, or closed its output.
    if (signal.aborted || code === 'EPIPE') return REFUSED
    const isUsage = error instanceof UsageError
    const hint = `see: ${[CALL, 'help', found?.name ?? findGroup(argv)].filter(Boolean).join(' ')}`
    printError(stderr, findLook(stderr, env), explain(error, found?.command, args), isUsage ? hint : undefined)
    return isUsage ? WRONG_USAGE : REFUSED
  }
}
