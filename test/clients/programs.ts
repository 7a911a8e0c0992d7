import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'

const ROOT = import.meta.dirname
const PYTHON = join(ROOT, 'node_modules/.venv/bin/python')
const BUILT = join(ROOT, 'node_modules/.built')

/** How programs of a folder are built and started. The others are scripts. */
const TOOLS = {
  go: { version: ['version'], build: (file: string) => ['-C', join(ROOT, 'go'), 'build', '-o', join(BUILT, file), `./${file.slice('go/'.length)}`], start: (file: string) => [join(BUILT, file)] },
  mvn: { version: ['--version'], build: (file: string) => ['--batch-mode', '--quiet', '--file', join(ROOT, file), `-Dbuilt=${join(BUILT, file)}`, 'package'], start: (file: string) => ['java', '-jar', join(BUILT, file, 'clients.jar')] }
}

/** A program with a library of somebody else. */
export interface LibraryProgram {
  name: string
  file: string
  /** What builds the program. Without it, the program is skipped. */
  tool?: keyof typeof TOOLS
}

/** Why a program cannot be built here; false if it can. */
export const findMissing = ({ tool }: LibraryProgram): string | false =>
  tool !== undefined && spawnSync(tool, TOOLS[tool].version).status !== 0 && `${tool} is not installed`

/** Builds what a tool must build, and returns the command that starts the program. */
export async function build ({ file, tool }: LibraryProgram): Promise<string[]> {
  if (tool === undefined) return [file.endsWith('.py') ? PYTHON : process.execPath, join(ROOT, file)]
  await promisify(execFile)(tool, TOOLS[tool].build(file))
  return TOOLS[tool].start(file)
}

/** Starts a program; resolves when it answers. It is killed when the test ends. */
export async function startProgram (t: Test, [command = '', ...args]: string[], env: Record<string, string>): Promise<void> {
  const child = spawn(command, args, { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  const closed = once(child, 'close')
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (chunk: string) => { text += chunk })
  t.teardown(async () => {
    child.kill('SIGKILL')
    await closed
    if (!t.passing()) process.stderr.write(text)
  })
  while (child.exitCode === null && !await fetch(`${env.ORIGIN}/nothing`).then(() => true, () => false)) await new Promise((resolve) => setTimeout(resolve, 50))
  if (child.exitCode !== null) throw new Error(`${command} exited: ${text}`)
}
