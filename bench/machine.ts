import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'

/** The cores that this process may use. */
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

/** Servers have one core or two; the driver has the last of three, or the second of two. */
export const CORES = {
  one: cores.slice(0, 1),
  two: cores.slice(0, 2),
  driver: cores.length > 2 ? cores.slice(2, 3) : cores.slice(1, 2)
}

/** Pins the command to these cores where the system can. */
export function pin (command: string[], to: number[]): string[] {
  return pinned && to.length > 0 ? ['taskset', '--cpu-list', to.join(','), ...command] : command
}

/** Resident bytes of a process; NaN on systems without /proc. */
export function readRss (pid: number): number {
  try {
    return Number(/^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
  } catch {
    return NaN
  }
}

/** Microseconds in a clock tick of /proc (proc_pid_stat(5)), on all usual builds of Linux. */
const TICK = 10_000

/** Processor time that a process has used, in microseconds; NaN on systems without /proc. */
export function readCpu (pid: number): number {
  try {
    // The command's name, in parentheses, may hold spaces. utime and stime are the 14th and 15th field.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
    return (Number(fields[11]) + Number(fields[12])) * TICK
  } catch {
    return NaN
  }
}

/**
 * Processor time of a process by thread, and how long its main thread was ready and waited for a core, in microseconds: the kernel counts
 * nanoseconds. NaN on systems without /proc.
 */
export function readThreadTimes (pid: number): { main: number, all: number, waited: number } {
  try {
    const read = (id: string | number): number[] => readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8').split(' ').map((time) => Number(time) / 1000)
    const [main = NaN, waited = NaN] = read(pid)
    return { main, waited, all: readdirSync(`/proc/${pid}/task`).map(read).reduce((sum, [time = NaN]) => sum + time, 0) }
  } catch {
    return { main: NaN, all: NaN, waited: NaN }
  }
}

/** Facts for the head of the report. */
export function describeMachine (): Record<string, string> {
  return {
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: `${cores.length} usable of ${cpus().length}`,
    pinned: pinned ? `servers to core ${CORES.one}, or to ${CORES.two} where noted; driver to core ${CORES.driver}` : 'no: taskset is not installed, or there is one core',
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    node: process.version,
    system: `${process.platform} ${process.arch}`,
    date: new Date().toISOString().slice(0, 16).replace('T', ' ') + ' UTC'
  }
}
