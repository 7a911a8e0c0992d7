import { dirname } from 'node:path'
import { makeDirectory, writeWholeFile } from '../lib/whole-file.ts'

/** Writes a file that only its owner reads, whole or not at all. Replaces a file of that name. */
export async function writeSecretFile (file: string, text: string): Promise<void> {
  await makeDirectory(dirname(file))
  await writeWholeFile(file, (draft) => draft.writeFile(text))
}
