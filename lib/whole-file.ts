import { randomUUID } from 'node:crypto'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { makeMissing } from './directories.ts'
import { readCode } from './failure.ts'

/** Error codes of systems and file systems that cannot sync a directory. */
const UNSUPPORTED = ['EISDIR', 'EPERM', 'EACCES', 'EINVAL', 'ENOTSUP']

/** Waits until the names in this directory are on the disk. Otherwise a power loss may remove the name of a new file. */
async function syncDirectory (directory: string): Promise<void> {
  try {
    const handle = await open(directory, 'r')
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  } catch (error) {
    if (!UNSUPPORTED.includes(readCode(error) ?? '')) throw error
  }
}

/** Creates a directory and its missing parents, accessible to the owner only, and waits until they are on the disk. */
export async function makeDirectory (directory: string): Promise<void> {
  const first = makeMissing(directory)
  if (first === undefined) return
  const last = dirname(resolve(first))
  for (let at = resolve(directory); at !== last;) await syncDirectory(at = dirname(at))
}

/**
 * Writes a file atomically, accessible to the owner only. It writes a draft in the same directory, and gives it the name when
 * the content is on the disk. Resolves when the name is on the disk too.
 * @param write writes to the draft, by its handle or its path
 * @param place gives the draft its name: `rename` replaces an existing file, `link` rejects with EEXIST
 */
export async function writeWholeFile (
  file: string, write: (draft: FileHandle, path: string) => Promise<unknown>, place: (draft: string, file: string) => Promise<void> = rename
): Promise<void> {
  const draft = join(dirname(file), `.${basename(file)}.${randomUUID()}`)
  const handle = await open(draft, 'wx', 0o600)
  try {
    try {
      await write(handle, draft)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await place(draft, file)
  } finally {
    await rm(draft, { force: true })
    await syncDirectory(dirname(file))
  }
}
