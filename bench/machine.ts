import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'

/** The cores this process may use. */
function findCores (): number[] {
  try {
    const list = /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]!
    return list.split(',').flatMap((range) => {
      const [first, last = first] = range.split('-').map(Number)
      return Array.from({ length: last! - first! + 1 }, (_, index) => first! + index)
    })
  } catch {
    return cpus().map((_, index) => index)
  }
}

const cores = findCores()
const pinned = cores.length > 1 && spawnSync('taskset', ['--version'], { stdio: 'ignore' }).status === 0

/** Where things run: servers on one core or two, the driver on the last of three, or on the second of two. */
export const CORES = {
  one: cores.slice(0, 1),
  two: cores.slice(0, 2),
  driver: cores.length > 2 ? cores.slice(2, 3) : cores.slice(1, 2)
}

/** The command, held to these cores where the system can. */
export function pin (command: string[], to: number[]): string[] {
  return pinned && to.length > 0 ? ['taskset', '--cpu-list', to.join(','), ...command] : command
}

/** Resident bytes of a process; NaN where the system does not tell. */
export function readRss (pid: number): number {
  try {
    return Number(/^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
  } catch {
    return NaN
  }
}

/** What the figures were taken on. */
export function describeMachine (): Record<string, string> {
  return {
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: `${cores.length} usable of ${cpus().length}`,
    pinned: pinned ? `servers on core ${CORES.one}, or on ${CORES.two} where said; driver on core ${CORES.driver}` : 'no: there is no taskset, or one core',
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    node: process.version,
    system: `${process.platform} ${process.arch}`,
    date: new Date().toISOString().slice(0, 16).replace('T', ' ') + ' UTC'
  }
}
