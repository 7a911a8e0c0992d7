import { COMMON, type Flag } from './args.ts'
import type { Command, Commands } from './command.ts'
import { CALL } from './welcome.ts'

const WIDTH = 28

function describeFlag ([name, flag]: [string, Flag]): string {
  const left = `  --${name}${flag.value === undefined ? '' : ` ${flag.value}`}`
  return `${left.padEnd(WIDTH)} ${flag.text}${flag.required === true ? ' Required.' : ''}`
}

/** The commands whose names begin with these words. */
export function listGroup (commands: Commands, words: string): [string, Command][] {
  return Object.entries(commands).filter(([name]) => name.startsWith(`${words} `))
}

const toLines = (commands: [string, Command][]): string[] => commands.map(([name, { summary }]) => `  ${name.padEnd(WIDTH - 2)} ${summary}`)

/** A line for each command. */
export function helpAll (commands: Commands): string {
  return [
    `Usage: ${CALL} COMMAND [FLAGS]`,
    '',
    "Works on the service's database, also while the service runs. Reads the same environment variables (DATABASE_URL and",
    'others).',
    '',
    ...toLines(Object.entries(commands)),
    `  ${'help [COMMAND]'.padEnd(WIDTH - 2)} Show this, or the flags of a command.`,
    '',
    'Every command:',
    '',
    ...Object.entries(COMMON).map(describeFlag),
    ''
  ].join('\n')
}

/** A line for each command of a group, such as `client secret`. */
export function helpGroup (commands: Commands, words: string): string {
  return [`Usage: ${CALL} COMMAND [FLAGS]`, '', ...toLines(listGroup(commands, words)), ''].join('\n')
}

/** The flags of one command, and the commands whose names begin with its own. */
export function helpOne (name: string, { summary, flags }: Command, commands: Commands = {}): string {
  const more = toLines(listGroup(commands, name))
  return [
    summary,
    '',
    `Usage: ${CALL} ${name} [FLAGS]`,
    '',
    ...Object.entries({ ...flags, ...COMMON }).map(describeFlag),
    '',
    ...(more.length === 0 ? [] : [...more, ''])
  ].join('\n')
}
