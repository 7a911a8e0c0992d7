import { hostname } from 'node:os'
import type { LogOutput } from './log-output.ts'

const LEVELS = { trace: 10, debug: 20, info: 30, warn: 40, error: 50, fatal: 60, silent: Infinity } as const

/** Writes a line; fields are plain values. */
export type Log = Record<'info' | 'warn' | 'error' | 'fatal', (message: string, fields?: Record<string, unknown>) => void>

/** Lines as pino writes them, for a process that has no app. */
export function createLog (output: Pick<LogOutput, 'write'>, level: string): Log {
  const least = LEVELS[level as keyof typeof LEVELS]
  const base = { pid: process.pid, hostname: hostname() }
  const write = (name: keyof Log) => (msg: string, fields: Record<string, unknown> = {}) => {
    if (LEVELS[name] >= least) output.write(`${JSON.stringify({ level: LEVELS[name], time: Date.now(), ...base, ...fields, msg })}\n`)
  }
  return { info: write('info'), warn: write('warn'), error: write('error'), fatal: write('fatal') }
}
