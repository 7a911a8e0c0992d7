/**
 * Scripts by which a shell completes commands and flags, made from the table of commands. They hold all names, so that completing starts no
 * program.
 * @module
 */
import { COMMON, type Flag, choice } from './args.ts'
import type { Command, Commands } from './command.ts'
import { toShort } from './help.ts'

/** The program as it is installed. */
const PROGRAM = 'fastify-identity'

/** What may stand after the words of a command so far. */
interface Node {
  /** The next words of commands, each with a description. */
  words: [word: string, text: string][]
  flags: [name: string, flag: Flag][]
  operand: Flag | undefined
}

/** What may stand at each beginning of a command: '', 'user', 'user show'. */
function toNodes (commands: Commands): Map<string, Node> {
  const nodes = new Map<string, Node>()
  const require = (path: string): Node => {
    const node: Node = nodes.get(path) ?? { words: [], flags: [], operand: undefined }
    nodes.set(path, node)
    return node
  }
  const add = (path: string, word: string, text: string) => {
    const { words } = require(path)
    if (!words.some(([other]) => other === word)) words.push([word, text])
  }
  for (const [name, { flags }] of Object.entries(commands)) {
    const words = name.split(' ')
    words.forEach((word, index) => {
      const path = words.slice(0, index).join(' ')
      const full = words.slice(0, index + 1).join(' ')
      const command: Command | undefined = commands[full]
      add(path, word, command === undefined ? `Commands that begin with ${full}` : toShort(command.summary))
    })
    const all = Object.entries({ ...flags, ...COMMON })
    Object.assign(require(name), { flags: all, operand: all.find(([, flag]) => flag.operand === true)?.[1] })
  }
  add('', 'help', 'Show all commands, or the flags of one')
  return nodes
}

/** What completes a value: these words, files, or nothing. */
function listValues ({ value, choices }: Flag): { words: readonly string[], hasFiles: boolean } {
  return { words: choices ?? [], hasFiles: value === 'FILE' }
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** A case of bash and zsh. */
const toCase = (pattern: string, statement: string): string => `    ${pattern}) ${statement} ;;`

/** The values of flags, with the paths whose flags they are: `user import --from`. */
function listFlagValues (nodes: Map<string, Node>): { key: string, words: readonly string[], hasFiles: boolean }[] {
  return [...nodes].flatMap(([path, { flags }]) => flags
    .filter(([, { type }]) => type === 'string')
    .map(([name, flag]) => ({ key: `${path} --${name}`, ...listValues(flag) })))
}

function toBash (nodes: Map<string, Node>): string {
  const cases = [...nodes].map(([path, { words, flags, operand }]) => {
    const values = operand === undefined ? [] : listValues(operand).words
    const [first, dashed] = [[...words.map(([word]) => word), ...values].join(' '), flags.map(([name]) => `--${name}`).join(' ')]
    return toCase(quote(path), `words=${quote(first)} flags=${quote(dashed)}${operand !== undefined && listValues(operand).hasFiles ? ' files=1' : ''}`)
  })
  const values = listFlagValues(nodes).map(({ key, words, hasFiles }) =>
    toCase(quote(key), `words=${quote(words.join(' '))} flags='' files=${hasFiles ? 1 : 0}`))
  return `# bash completion of ${PROGRAM}
_fastify_identity () {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} at='' word words='' flags='' files=0 index node is_known
  local -a nodes=(${[...nodes.keys()].filter(Boolean).map(quote).join(' ')})
  # The words of the command so far.
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${at:+$at }\${COMP_WORDS[index]}"
    [[ $word == help ]] && continue
    is_known=0
    for node in "\${nodes[@]}"; do [[ $node == "$word" ]] && is_known=1; done
    ((is_known)) || break
    at=$word
  done
  case $at in
${cases.join('\n')}
  esac
  case "$at $previous" in
${values.join('\n')}
  esac
  # Flags where nothing else may stand, or a dash was typed.
  if [[ $current == -* || -z $words && $files == 0 ]]; then words=$flags files=0; fi
  COMPREPLY=()
  if ((files)); then
    compopt -o filenames 2> /dev/null
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
  else
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$words" -- "$current")
  fi
}
complete -F _fastify_identity ${PROGRAM}
`
}

/** A text in a list of zsh's _describe: a colon ends the name. */
const toItem = (name: string, text: string): string => quote(`${name.replaceAll(':', '\\:')}:${text}`)

function toZsh (nodes: Map<string, Node>): string {
  const cases = [...nodes].map(([path, { words, flags, operand }]) => {
    const values = operand === undefined ? [] : listValues(operand).words.map((word) => toItem(word, operand.text))
    const items = [...words.map(([word, text]) => toItem(word, text)), ...values, ...flags.map(([name, { text }]) => toItem(`--${name}`, text))]
    return toCase(quote(path), `items=(${items.join(' ')})${operand !== undefined && listValues(operand).hasFiles ? ' files=1' : ''}`)
  })
  const values = listFlagValues(nodes).map(({ key, words, hasFiles }) =>
    toCase(quote(key), `items=(${words.map((word) => quote(word)).join(' ')}) files=${hasFiles ? 1 : 0}`))
  return `#compdef ${PROGRAM}
# zsh completion of ${PROGRAM}
_fastify_identity () {
  local at='' word files=0 index
  local -a items
  local -a nodes=(${[...nodes.keys()].filter(Boolean).map(quote).join(' ')})
  for ((index = 2; index < CURRENT; index++)); do
    word="\${at:+$at }\${words[index]}"
    [[ $word == help ]] && continue
    ((\${nodes[(Ie)$word]})) || break
    at=$word
  done
  case $at in
${cases.join('\n')}
  esac
  case "$at \${words[CURRENT-1]}" in
${values.join('\n')}
  esac
  ((\${#items})) && _describe -t commands '${PROGRAM}' items
  if ((files)); then _files; fi
}
if [[ $funcstack[1] == _fastify_identity ]]; then _fastify_identity "$@"; else compdef _fastify_identity ${PROGRAM}; fi
`
}

/** A quoted text of fish, whose backslash also quotes itself. */
const quoteFish = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

function toFish (nodes: Map<string, Node>): string {
  const lines = [...nodes].flatMap(([path, { words, flags, operand }]) => {
    const at = `-n ${quoteFish(`__fastify_identity_at ${quoteFish(path)}`)}`
    const complete = `complete -c ${PROGRAM} ${at}`
    const flagLines = flags.map(([name, flag]) => {
      const { words, hasFiles } = listValues(flag)
      const values = flag.type === 'boolean' ? '' : `${hasFiles ? ' -r -F' : ' -x'}${words.length === 0 ? '' : ` -a ${quoteFish(words.join(' '))}`}`
      return `${complete} -l ${name}${values} -d ${quoteFish(flag.text)}`
    })
    const { words: values, hasFiles } = operand === undefined ? { words: [], hasFiles: false } : listValues(operand)
    return [
      ...words.map(([word, text]) => `${complete} -a ${quoteFish(word)} -d ${quoteFish(text)}`),
      ...(values.length === 0 ? [] : [`${complete} -a ${quoteFish(values.join(' '))}`]),
      ...(hasFiles ? [`${complete} -F`] : []),
      ...flagLines
    ]
  })
  return `# fish completion of ${PROGRAM}
function __fastify_identity_at
  set -l nodes ${[...nodes.keys()].filter(Boolean).map(quoteFish).join(' ')}
  set -l at ''
  for word in (commandline -opc)[2..]
    set -l next (string trim -- "$at $word")
    test "$next" = help; and continue
    contains -- $next $nodes; or break
    set at $next
  end
  test "$at" = "$argv[1]"
end
complete -c ${PROGRAM} -f
${lines.join('\n')}
`
}

const SHELLS = { bash: toBash, zsh: toZsh, fish: toFish }
type Shell = keyof typeof SHELLS

/** The command that prints the scripts, for a table of commands that has it too. */
export function toCompletion (getCommands: () => Commands): Commands {
  return {
    completion: {
      summary: 'Print the completion script of a shell.',
      example: 'completion bash > ~/.local/share/bash-completion/completions/fastify-identity',
      flags: {
        shell: { ...choice('SHELL', Object.keys(SHELLS), 'bash, zsh or fish.'), required: true, operand: true }
      },
      async runAlone ({ args, stdout }) {
        stdout.write(SHELLS[args.required('shell') as Shell](toNodes(getCommands())))
      }
    }
  }
}
