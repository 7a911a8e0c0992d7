import fs, { type FileHandle } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { basename } from 'node:path'
import type { Test } from 'tap'

/**
 * Records the file operations `sync`, `link` and `rename` until the test ends, with the name of the file or directory without
 * its random parts.
 */
export function recordFiles (t: Test): string[] {
  const steps: string[] = []
  const name = (path: unknown) => basename(String(path)).replace(/^\.|\.?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '')
  const { open, link, rename } = fs
  Object.assign(fs, {
    async open (...args: Parameters<typeof open>): Promise<FileHandle> {
      const handle = await open(...args)
      const sync = handle.sync.bind(handle)
      handle.sync = async () => {
        await sync()
        steps.push(`sync ${name(args[0])}`)
      }
      return handle
    },
    async link (...args: Parameters<typeof link>) {
      await link(...args)
      steps.push(`link ${name(args[1])}`)
    },
    async rename (...args: Parameters<typeof rename>) {
      await rename(...args)
      steps.push(`rename ${name(args[1])}`)
    }
  })
  syncBuiltinESMExports()
  t.teardown(() => {
    Object.assign(fs, { open, link, rename })
    syncBuiltinESMExports()
  })
  return steps
}
