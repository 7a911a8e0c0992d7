import { COMMON, type Flag, nameFlag } from './args.ts'
import type { Command, Commands } from './command.ts'
import { type Look, wrap } from './look.ts'
import { CALL } from './welcome.ts'

/** Columns before the texts of commands and flags. */
const INDENT = 28

/** Help without colours. */
const PLAIN: Look = { width: undefined, paint: (_format, text) => text }

/**
 * The groups of the list of all commands: the beginnings of their names, and the command whose example stands below. A command belongs to the
 * group with its longest beginning.
 */
export const GROUPS: [title: string, beginnings: string[], example: string][] = [
  ['Start and sign in', ['bootstrap', 'serve', 'login', 'token', 'config', 'status'], 'token create'],
  ['Help a user', [
    'find', 'user show', 'user why', 'user unlock', 'user recover', 'user password', 'user factors', 'user identities', 'user verify-email',
    'user email', 'user sessions', 'user mails', 'sessions'
  ], 'user why'],
  ['Manage users', ['user'], 'user create'],
  ['Move users in and out', ['user import', 'user export', 'user data'], 'user import'],
  ['Apps and APIs', ['client', 'resource'], 'client create'],
  ['Events and webhooks', ['event', 'webhook'], 'event list'],
  ['Email, texts and sign-in providers', ['mail', 'texts', 'upstream'], 'mail test'],
  ['Background jobs', ['jobs', 'work', 'logout'], 'jobs list'],
  ['Database and keys', ['backup', 'restore', 'compact', 'doctor', 'move', 'keys'], 'backup'],
  ['Tools', ['completion', 'testing'], 'completion']
]

/** Whether a name is these words, or begins with them. */
const beginsWith = (name: string, words: string): boolean => name === words || name.startsWith(`${words} `)

/** The title of the group of a command. Undefined: it is in none. */
export function findGroupOf (name: string): string | undefined {
  const matches = GROUPS.flatMap(([title, beginnings]) => beginnings.filter((words) => beginsWith(name, words)).map((words) => ({ title, words })))
  return matches.sort((a, b) => b.words.length - a.words.length)[0]?.title
}

const toRow = (left: string, text: string): string =>
  left.length < INDENT - 1
    ? `${left.padEnd(INDENT)}${wrap(text, { indent: INDENT })}`
    : `${left}\n${' '.repeat(INDENT)}${wrap(text, { indent: INDENT })}`

function describeFlag ([name, flag]: [string, Flag]): string {
  const { value, operand } = flag
  const left = `  ${operand === true ? `[--${name}]` : `--${name}`}${value === undefined ? '' : ` ${value}`}`
  return toRow(left, `${flag.text}${flag.required === true ? ' Required.' : ''}`)
}

/** The first sentence. */
export const toShort = (summary: string): string => /^.*?\.(?= [A-Z]|$)/.exec(summary)?.[0].replace(/\.$/, '') ?? summary

const toRows = (commands: [string, Command][]): string[] => commands.map(([name, { summary }]) => toRow(`  ${name}`, toShort(summary)))

/** The commands whose names begin with these words. */
export function listGroup (commands: Commands, words: string): [string, Command][] {
  return Object.entries(commands).filter(([name]) => name.startsWith(`${words} `))
}

/** All commands, in groups. */
export function helpAll (commands: Commands, { paint }: Look = PLAIN): string {
  const groups = GROUPS.map(([title, , example]): [string, [string, Command][], string] =>
    [title, Object.entries(commands).filter(([name]) => findGroupOf(name) === title), commands[example]?.example ?? ''])
  const others = Object.entries(commands).filter(([name]) => findGroupOf(name) === undefined)
  return [
    `Usage: ${CALL} COMMAND [FLAGS]`,
    '',
    wrap("Commands work on the service's database, also while the service runs. They read the same environment variables as the service: " +
      'DATABASE_URL and others.'),
    ...[...groups, ['Others', others, ''] as const].filter(([, rows]) => rows.length > 0).flatMap(([title, rows, example]) => [
      '',
      paint('bold', title),
      '',
      ...toRows([...rows]),
      ...(example === '' ? [] : ['', wrap(`Example: ${example}`, { indent: 9, start: 0 })])
    ]),
    '',
    paint('bold', 'Every command'),
    '',
    ...Object.entries(COMMON).map(describeFlag),
    '',
    toRow('  help [COMMAND]', 'Show this, or the flags of a command.'),
    toRow('  --version', 'Show the version.'),
    ''
  ].join('\n')
}

/** The commands of a group, such as `client secret`. */
export function helpGroup (commands: Commands, words: string): string {
  const found = listGroup(commands, words)
  return [
    `Usage: ${CALL} ${words} COMMAND [FLAGS]`,
    '',
    ...toRows(found),
    '',
    wrap(`Example: ${CALL} ${found[0]?.[1].example}`, { indent: 9, start: 0 }),
    ''
  ].join('\n')
}

/** What must be given, and whether there is more: `user show ACCOUNT`. */
export function toUsage (name: string, { flags }: Pick<Command, 'flags'>): string {
  const show = (flag: string): string => {
    const { value } = flags[flag] ?? {}
    const label = nameFlag(flag, flags[flag])
    return label.startsWith('--') && value !== undefined ? `${label} ${value}` : label
  }
  const alternatives = new Set(Object.values(flags).flatMap(({ or: other }) => other ?? []))
  // What the command is about comes first.
  const entries = Object.entries(flags).sort(([, a], [, b]) => Number(b.operand === true) - Number(a.operand === true))
  const parts = entries.flatMap(([flag, { required, operand, or: other }]) => {
    if (other !== undefined) return `(${show(flag)} | ${show(other)})`
    if (required === true) return show(flag)
    return operand === true ? `[${show(flag)}]` : []
  })
  const isMore = entries.some(([flag, { required, operand, or: other }]) =>
    required !== true && operand !== true && other === undefined && !alternatives.has(flag))
  return [name, ...parts, ...(isMore ? ['[FLAGS]'] : [])].join(' ')
}

/** The flags of one command, and the commands whose names begin with its own. */
export function helpOne (name: string, command: Command, commands: Commands = {}, { paint }: Look = PLAIN): string {
  const more = toRows(listGroup(commands, name))
  return [
    wrap(command.summary),
    '',
    wrap(`Usage: ${CALL} ${toUsage(name, command)}`, { indent: 7, start: 0 }).replace('Usage:', paint('bold', 'Usage:')),
    '',
    ...Object.entries({ ...command.flags, ...COMMON }).map(describeFlag),
    '',
    wrap(`Example: ${CALL} ${command.example}`, { indent: 9, start: 0 }).replace('Example:', paint('bold', 'Example:')),
    '',
    ...(more.length === 0 ? [] : [paint('bold', 'More commands'), '', ...more, ''])
  ].join('\n')
}
