import { createInterface } from 'node:readline'
import type { Surroundings } from './command.ts'
import { WIDTH, wrap } from './look.ts'

/** The first line; undefined when the input ends before it. The terminal edits it, and Ctrl-C remains a signal. */
async function readLine ({ stdin, signal }: Pick<Surroundings, 'stdin' | 'signal'>): Promise<string | undefined> {
  const lines = createInterface({ input: stdin, signal })
  try {
    const { value } = await lines[Symbol.asyncIterator]().next() as { value?: string }
    return value
  } finally {
    lines.close()
  }
}

/**
 * Asks before what cannot be undone, where a person sees the question and can answer: stdin and stdout are terminals. The flag `yes` skips
 * it, see `YES`.
 * @throws Error when the answer is not yes
 */
export async function confirm (surroundings: Pick<Surroundings, 'args' | 'look' | 'stdin' | 'stdout' | 'stderr' | 'signal'>, question: string): Promise<void> {
  const { args, look, stdin, stdout, stderr, signal } = surroundings
  if (args.has('yes') || stdin.isTTY !== true || stdout.isTTY !== true) return
  // Not between the JSON on stdout.
  const output = stderr.isTTY === true ? stderr : stdout
  output.write(`${wrap(`${question} [y/N]`, { width: look.width ?? WIDTH })} `)
  const answer = await readLine(surroundings)
  if (answer === undefined) output.write('\n')
  signal.throwIfAborted()
  if (!/^\s*y(es)?\s*$/i.test(answer ?? '')) throw new Error('nothing was changed')
}
