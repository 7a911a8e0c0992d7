import { COMMON, type Flag } from './args.ts'
import type { Command, Commands } from './command.ts'
import { CALL } from './welcome.ts'

const WIDTH = 28

function describeFlag ([name, flag]: [string, Flag]): string {
  const left = `  --${name}${flag.value === undefined ? '' : ` ${flag.value}`}`
  return `${left.padEnd(WIDTH)} ${flag.text}${flag.required === true ? ' Required.' : ''}`
}

/** A line for each command. */
export function helpAll (commands: Commands): string {
  const lines = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(WIDTH - 2)} ${summary}`)
  return [
    `Usage: ${CALL} COMMAND [FLAGS]`,
    '',
    "Works on the service's database, also while the service runs. Reads the same environment variables (DATABASE_URL and",
    'others).',
    '',
    ...lines,
    `  ${'help [COMMAND]'.padEnd(WIDTH - 2)} Show this, or the flags of a command.`,
    '',
    'Every command:',
    '',
    ...Object.entries(COMMON).map(describeFlag),
    ''
  ].join('\n')
}

/** The flags of one command. */
export function helpOne (name: string, { summary, flags }: Command): string {
  return [summary, '', `Usage: ${CALL} ${name} [FLAGS]`, '', ...Object.entries({ ...flags, ...COMMON }).map(describeFlag), ''].join('\n')
}
