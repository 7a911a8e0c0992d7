/**
 * Puts the folders of the tests (`t.testdir()`) into an in-memory file system if there is one, so that no test waits for a
 * disk. The store syncs every write, which takes a disk milliseconds.
 */
import { accessSync, constants, lstatSync, mkdirSync, rmSync, statfsSync, symlinkSync } from 'node:fs'
import { hash } from 'node:crypto'
import { join } from 'node:path'

const MEMORY = '/dev/shm'
/** More than the tests need at a time. In a container the file system may be small. */
const LEAST = 2 ** 30

function hasRoom (): boolean {
  try {
    accessSync(MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= LEAST
  } catch {
    return false
  }
}

const root = join(import.meta.dirname, '..')
const fixtures = join(root, '.tap/fixtures')
if (lstatSync(fixtures, { throwIfNoEntry: false })?.isSymbolicLink() === true) rmSync(fixtures)
if (hasRoom()) {
  const folder = join(MEMORY, `fastify-identity-${hash('sha256', root).slice(0, 16)}`)
  rmSync(fixtures, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  mkdirSync(join(root, '.tap'), { recursive: true })
  symlinkSync(folder, fixtures)
}
