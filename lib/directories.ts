import { existsSync, mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { readCode } from './failure.ts'

/**
 * Creates a directory and its missing parents, accessible to the owner only. Node's recursive mkdir loops for ever on a file
 * system that refuses directories with ENOENT, such as /proc.
 * @returns the topmost directory that was missing; undefined when none was
 */
export function makeMissing (directory: string): string | undefined {
  const missing: string[] = []
  for (let at = resolve(directory); !existsSync(at); at = dirname(at)) missing.unshift(at)
  for (const path of missing) {
    try {
      mkdirSync(path, { mode: 0o700 })
    } catch (error) {
      // Another process created it first.
      if (readCode(error) !== 'EEXIST') throw error
    }
  }
  return missing[0]
}
