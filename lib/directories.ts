import { existsSync, mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Makes a directory and those above it, for the owner only. Node's own recursive mkdir never ends where the file system refuses
 * directories with ENOENT, as /proc does.
 * @returns the first one that was missing; undefined when none was
 */
export function makeMissing (directory: string): string | undefined {
  const missing: string[] = []
  for (let at = resolve(directory); !existsSync(at); at = dirname(at)) missing.unshift(at)
  for (const path of missing) {
    try {
      mkdirSync(path, { mode: 0o700 })
    } catch (error) {
      // Another process was first.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  return missing[0]
}
