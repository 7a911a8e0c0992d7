import { hash } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { randomText } from '../ids.ts'

/** A clock that all processes of one machine share, and that nobody sets. Readings of two machines cannot be compared. */
export interface Machine {
  /** Another one after each start of the machine, because the clock then begins again. */
  readonly id: string
  /** Microseconds. */
  read (): number
}

/** Characters of an id. */
const LENGTH = 11

/** Linux: the clock belongs to a start of the kernel, and to a time namespace. Elsewhere each process counts as a machine. */
function findId (): string {
  try {
    const parts = [readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'), readlinkSync('/proc/self/ns/time')]
    return hash('sha256', parts.join(), 'base64url').slice(0, LENGTH)
  } catch {
    return randomText(LENGTH)
  }
}

/** The machine of this process. */
export const MACHINE: Machine = {
  id: findId(),
  read () {
    const [seconds, nanoseconds] = process.hrtime()
    return seconds * 1e6 + Math.floor(nanoseconds / 1e3)
  }
}
